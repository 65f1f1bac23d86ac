"""Several nodes on one PostgreSQL database: what only one of them does, what all of them hear,
and what a database does to them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from redrive.lifecycle import JobState
from redrive.models import Event
from redrive.protocol.commands import Act, JobOrder
from redrive.protocol.queries import ListNodes, ListRedrives, Status
from support.daemon import eventually
from support.databases import OtherServer, other_server, postgresql_url
from support.nodes import Nodes, nodes
from support.proxy import Proxy
from support.trial import Trial

HANDLERS = """
import os, time

def write(path, n, seconds=0.0):
    time.sleep(seconds)
    with open(path, "a") as file:
        file.write(f"{n}\\n")

def check(path):
    if not os.path.exists(path):
        raise ValueError("not there")

def say():
    pass
"""

CONFIG = """
[pools.default]
path = ["."]
processes = 2
[tasks.write]
python = "handlers:write"
retry = { max_attempts = 10, delays = ["100ms"], jitter = 0 }
[tasks.check]
python = "handlers:check"
retry = false
[tasks.say]
python = "handlers:say"
[pipelines.campaign]
steps = [
    { name = "request", task = "say" },
    { name = "download", task = "say", gate = "batch", delay = "1s" },
]
"""

TICKS = """
[schedules.tick]
task = "say"
every = "1s"
overlap = "allow"
"""


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Nodes]:
    with nodes(tmp_path, CONFIG, HANDLERS) as made:
        made.start()
        yield made


def orders(n: int, path: Path, seconds: float = 0.0) -> list[JobOrder]:
    return [JobOrder(args={"path": str(path), "n": i, "seconds": seconds}) for i in range(n)]


# ---- what only one of them does ----------------------------------------------------------------


def test_a_slot_fires_once_whoever_leads(tmp_path: Path) -> None:
    with nodes(tmp_path, CONFIG + TICKS, HANDLERS) as two:
        two.start()
        leader = two.until_leader()
        [other] = [each for each in two.trials.values() if each is not leader]

        def fires() -> list[Event]:
            return [e for e in two.all_events(other) if e.type == "schedule_fired"]

        eventually(lambda: len(fires()) >= 3, "some slots have fired")
        leader.pull_the_plug()
        before = len(fires())
        eventually(lambda: len(fires()) >= before + 3, "the other one fires them now")
        slots = [event.data["slot"] for event in fires()]
        assert len(set(slots)) == len(slots)
        jobs = [event.data["job"] for event in fires()]
        assert len(set(jobs)) == len(jobs)
        assert two.until_leader() is other


def test_a_gate_opens_once_for_runs_of_both(two: Nodes) -> None:
    runs = [
        two[name].ask.start("campaign", batch="june", key=f"{name}{i}").first_id
        for name in "ab"
        for i in range(3)
    ]
    for run in runs:
        eventually(lambda run=run: two["a"].ask.run(run).state == "done", f"{run} is done")  # type: ignore[misc]
    kinds = [event.type for event in two.all_events(two["b"])]
    assert kinds.count("gate_opened") == 1
    two.check()


def test_a_redrive_counts_what_either_node_ends(two: Nodes) -> None:
    there = two.folder / "there"
    dead = [two["a"].enqueue("check", path=str(there)) for _ in range(12)]
    for id in dead:
        assert two["b"].until_ended(id).state is JobState.DEAD
    there.touch()
    wish = Act(verb="requeue", where="state:dead", force=True, canary=2, pace="20/s")
    asked = two["b"].ask.ask(wish)

    def row() -> tuple[str, int, int, int]:
        [found] = two["a"].ask.ask(ListRedrives()).redrives
        return found.state, found.requeued, found.succeeded, found.skipped

    assert asked.total == 12
    eventually(lambda: row()[0] == "done", "the redrive is over")
    assert row() == ("done", 12, 12, 0)
    two.check()


# ---- what all of them hear ---------------------------------------------------------------------


class Listener:
    """Follows the log at one node, in a thread of its own."""

    def __init__(self, trial: Trial) -> None:
        self.heard: list[Event] = []
        self._client = trial.client()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        for told in self._client.follow(after=0):
            if isinstance(told, Event):
                self.heard.append(told)


def test_whoever_listens_at_either_hears_everything_in_order(two: Nodes) -> None:
    listeners = [Listener(two[name]) for name in "ab"]
    for name in "ab":
        two[name].ask.enqueue_many("write", orders(50, two.folder / "ran", 0.01))
    two["a"].until_all_ended()
    head = two["a"].ask.events(last=1).head
    for listener in listeners:
        eventually(lambda it=listener: len(it.heard) >= head, "everything is heard")  # type: ignore[misc]
        assert [event.seq for event in listener.heard] == list(range(1, len(listener.heard) + 1))
    one, other = (two[name].ask.ask(Status()) for name in "ab")
    assert one.states == other.states
    assert one.states["done"] == 100
    for name in "ab":
        rows = two[name].ask.ask(ListNodes()).nodes
        assert [(row.name, row.state) for row in rows] == [("a", "up"), ("b", "up")]


# ---- what a database does to them ----------------------------------------------------------------


def end_sessions(server: OtherServer) -> None:
    url = server.url.replace("postgresql+psycopg", "postgresql")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


@pytest.fixture
def server() -> Iterator[OtherServer]:
    with other_server() as made:
        yield made


def test_a_server_that_ends_sessions_and_restarts_costs_no_job_and_no_attempt(
    tmp_path: Path, server: OtherServer
) -> None:
    with nodes(tmp_path, CONFIG, HANDLERS, url=server.url) as two:
        two.start()
        path = two.folder / "ran"
        two["a"].ask.enqueue_many("write", orders(150, path, 0.02))
        for n in (20, 40, 60):
            eventually(lambda n=n: len(two.wrote("ran")) >= n, f"{n} have run")  # type: ignore[misc]
            end_sessions(server)
        server.stop()
        server.start()
        two["b"].until_all_ended()
        assert sorted(map(int, two.wrote("ran"))) == list(range(150))  # and none of them twice
        assert two["a"].ask.status().states["done"] == 150
        assert two.ran_on(two.all_events(two["a"])).total() == 150
        two.check()


def test_a_node_whose_connections_go_dead_goes_on_and_the_other_never_waits(
    tmp_path: Path,
) -> None:
    url = postgresql_url()
    with Proxy(url) as proxy, nodes(tmp_path, CONFIG, HANDLERS, url=url) as two:
        config = two["b"].config
        config.write_text(config.read_text().replace(url, proxy.url))
        two.start()
        path = two.folder / "ran"
        two["a"].ask.enqueue_many("write", orders(100, path, 0.02))
        eventually(lambda: len(two.wrote("ran")) >= 20, "some have run")
        proxy.freeze()
        two["a"].until_all_ended()
        assert sorted({int(n) for n in two.wrote("ran")}) == list(range(100))
        id = two["b"].enqueue("check", path=str(path))
        assert two["b"].until_ended(id).state is JobState.DONE
        two.check()


def test_a_strangers_long_transaction_holds_up_nothing(two: Nodes) -> None:
    listener = Listener(two["b"])
    url = two.url.replace("postgresql+psycopg", "postgresql")
    with psycopg.connect(url) as stranger:
        stranger.execute("SELECT pg_current_xact_id(), count(*) FROM jobs")
        two["a"].ask.enqueue_many("write", orders(30, two.folder / "ran"))
        two["a"].until_all_ended()
        head = two["a"].ask.events(last=1).head
        eventually(lambda: len(listener.heard) >= head, "everything is heard")
        stranger.rollback()
    two.check()
