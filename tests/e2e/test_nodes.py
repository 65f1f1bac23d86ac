"""Several nodes on one PostgreSQL database: real daemons, and what the store says of them.

Nodes here lose patience with each other after four seconds instead of twelve.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from redrive.errors import RedriveError
from redrive.lifecycle import JobState
from redrive.models import Event
from redrive.protocol.commands import Act, JobOrder, PauseIt, ResumeIt
from redrive.protocol.queries import ListNodes
from support import faults
from support.daemon import eventually
from support.nodes import BASE, Nodes, is_up, nodes
from support.processes import is_alive
from support.trial import trial

HANDLERS = (
    faults.HANDLERS
    + """
def span(path, n, key="", seconds=0.1):
    "When it ran, so that a test can see who ran beside whom."
    began = time.time()
    time.sleep(seconds)
    note(path, f"{began}/{time.time()}")

def hang_once(path):
    note(path, os.getpid())
    if redrive.current_job().attempt == 1:
        time.sleep(600)

def flaky(path):
    if not os.path.exists(path):
        raise ConnectionError("away")
"""
)

TASKS = """
[pools.default]
path = ["."]
processes = 2
[queues.urgent]
priority = 10
[queues.narrow]
concurrency = 1
[queues.metered]
rate = "4/min"
[retry.soon]
max_attempts = 3
delays = ["50ms"]
jitter = 0
[tasks.write]
python = "handlers:write"
[tasks.hang]
python = "handlers:hang"
retry = "soon"
grace = "300ms"
[tasks.hang_once]
python = "handlers:hang_once"
retry = "soon"
grace = "300ms"
[tasks.one]
python = "handlers:span"
concurrency = 1
[tasks.keyed]
python = "handlers:span"
concurrency = 1
concurrency_key = "{{ args.key }}"
[tasks.sleep]
command = ["sleep", "{{ args.seconds }}"]
retry = "soon"
grace = "300ms"
[tasks.echo]
command = ["echo", "{{ args.text }}"]
[tasks.flaky]
python = "handlers:flaky"
retry = { max_attempts = 50, delays = ["100ms"], jitter = 0 }
breaker = { share = 0.5, window = "1m", probe_every = "300ms", at_least = 3 }
"""


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Nodes]:
    with nodes(tmp_path, TASKS, HANDLERS) as made:
        made.start()
        yield made


def orders(n: int, queue: str | None = None, **args: object) -> list[JobOrder]:
    return [JobOrder(args={**args, "n": i}, queue=queue) for i in range(n)]


# ---- sharing the work ------------------------------------------------------------------------


def test_what_is_enqueued_at_one_is_run_by_both_and_never_twice(two: Nodes) -> None:
    path = str(two.folder / "ran")
    ids = two["a"].enqueue_many("write", 120, path=path, seconds=0.2)
    two["b"].until_all_ended()
    assert sorted(map(int, two.wrote("ran"))) == list(range(120))
    assert set(two.ran_on(two.all_events(two["a"]))) == {"a", "b"}
    assert {two["b"].job(id).state for id in ids} == {JobState.DONE}
    two.check()


def overlaps(spans: list[str]) -> int:
    """How many ran at once, at most."""
    edges = sorted(
        edge for span in spans for edge in zip(map(float, span.split("/")), (1, -1), strict=True)
    )
    running = most = 0
    for _, step in edges:
        running += step
        most = max(most, running)
    return most


def test_limits_hold_over_both_together(two: Nodes) -> None:
    def path(name: str) -> str:
        return str(two.folder / name)

    ask = {name: two[name].ask for name in "ab"}
    for asker in ask.values():
        asker.enqueue_many("one", orders(6, path=path("task")))
        asker.enqueue_many("write", orders(6, "narrow", path=path("queue")))
        for key in "xy":
            asker.enqueue_many("keyed", orders(5, path=path(f"key-{key}"), key=key))
        asker.enqueue_many("write", orders(5, "metered", path=path("rate")))
    eventually(
        lambda: ask["a"].status().states["done"] == 12 + 12 + 20 + 4, "all but the metered", 90
    )
    assert overlaps(two.wrote("task")) == 1
    assert overlaps(two.wrote("key-x")) == overlaps(two.wrote("key-y")) == 1
    assert len(two.wrote("rate")) == 4
    assert most_leased(two.all_events(two["a"]), two, "narrow") == 1


def most_leased(events: list[Event], two: Nodes, queue: str) -> int:
    """How many jobs of a queue were under way at once, at most, by the log."""
    leased: set[int] = set()
    most = 0
    queues = {job.id: job.queue for job in two["a"].ask.jobs(limit=1000).jobs}
    for event in events:
        if event.job is None or queues[event.job] != queue:
            continue
        if event.state == "leased":
            leased.add(event.job)
        else:
            leased.discard(event.job)
        most = max(most, len(leased))
    return most


def test_the_more_urgent_goes_first_on_both(two: Nodes) -> None:
    path = str(two.folder / "ran")
    ask = two["a"].ask
    for queue in ("default", "urgent"):
        ask.ask(PauseIt(name=f"queue:{queue}"))
    ask.enqueue_many("write", orders(40, path=path, seconds=0.05))
    urgent = ask.enqueue_many("write", orders(40, "urgent", path=path, seconds=0.05))
    assert urgent.first_id is not None
    for queue in ("urgent", "default"):
        two["b"].ask.ask(ResumeIt(name=f"queue:{queue}"))
    two["b"].until_all_ended()
    started = [e.job for e in two.all_events(two["a"]) if e.type == "action_started"]
    first = [job for job in started[:40] if job is not None and job >= urgent.first_id]
    assert len(first) >= 30
    assert set(two.ran_on(two.all_events(two["a"]))) == {"a", "b"}


# ---- what is asked at one is obeyed by the other -----------------------------------------------


def test_a_pause_asked_at_one_holds_at_the_other(two: Nodes) -> None:
    two["a"].ask.ask(PauseIt(name="task:write"))
    eventually(lambda: two["b"].ask.status().paused, "b knows of the pause")
    ids = two["b"].enqueue_many("write", 20, path=str(two.folder / "ran"))
    other = two["b"].enqueue("sleep", seconds=0)
    two["b"].until_ended(other)
    assert two.wrote("ran") == []
    two["b"].ask.ask(ResumeIt(name="task:write"))
    for id in ids:
        two["a"].until_ended(id)
    eventually(lambda: not two["a"].ask.status().paused, "a knows that it is over")


def test_the_fate_of_what_was_asked_at_one_is_known_at_the_other(two: Nodes) -> None:
    pause = PauseIt(name="queue:narrow")
    two["a"].ask.ask(pause, id="paused-at-a")
    assert two["b"].ask.fate("paused-at-a").known
    assert not two["b"].ask.fate("paused-at").known
    assert not two["b"].ask.fate("paused_at_a").known
    with pytest.raises(RedriveError):
        two["a"].ask.ask(PauseIt(name="queue:nope"), id="refused-at-a")
    assert not two["b"].ask.fate("refused-at-a").known


def test_what_is_held_at_one_is_released_at_the_other(two: Nodes) -> None:
    path = str(two.folder / "ran")
    placed = two["a"].ask.enqueue_many("write", [JobOrder(args={"path": path, "n": 1}, hold=True)])
    two["b"].ask.ask(Act(verb="release", ids=[str(placed.first_id)]))
    assert placed.first_id is not None
    assert two["a"].until_ended(placed.first_id).state is JobState.DONE


@pytest.mark.parametrize("task", ["hang", "sleep"])
@pytest.mark.parametrize(("verb", "end"), [("cancel", "job_cancelled"), ("kill", "job_killed")])
def test_what_runs_on_one_is_ended_from_the_other(
    two: Nodes, task: str, verb: str, end: str
) -> None:
    args = {"path": str(two.folder / "pid")} if task == "hang" else {"seconds": 600}
    id = two["a"].enqueue(task, **args)
    node = two["a"].until_told(id, "action_started").data["node"]
    [asked] = [trial for name, trial in two.trials.items() if name != node]
    asked.ask.ask(Act(verb=verb, ids=[str(id)]))
    job = asked.until_ended(id)
    assert job.state is JobState.CANCELLED
    event = asked.until_told(id, end)
    assert event.data["by"]
    if task == "hang" and verb == "kill":
        [pid] = two.wrote("pid")
        eventually(partial(is_gone, int(pid)), "its process is gone")


def test_what_runs_on_one_is_restarted_from_the_other(two: Nodes) -> None:
    id = two["a"].enqueue("hang", path=str(two.folder / "pid"))
    node = two["a"].until_told(id, "action_started").data["node"]
    [asked] = [trial for name, trial in two.trials.items() if name != node]
    asked.ask.ask(Act(verb="restart", ids=[str(id)]))
    asked.until_told(id, "job_restarted")
    asked.until_told(id, "action_started", 2)
    assert asked.job(id).attempts == 1
    asked.ask.ask(Act(verb="kill", ids=[str(id)]))
    asked.until_ended(id)


def test_output_is_told_by_the_node_that_ran_the_attempt_and_the_other_says_where(
    two: Nodes,
) -> None:
    id = two["a"].enqueue("echo", text="hello")
    two["b"].until_ended(id)
    name = two["a"].until_told(id, "action_started").data["node"]
    [other] = [trial for each, trial in two.trials.items() if each != name]
    assert two[name].run("logs", str(id)).stdout == "hello\n"
    asked = other.run("logs", str(id))
    words = f"redrive: node {name} ran this attempt and has its output: ask the daemon there\n"
    assert (asked.stdout, asked.stderr) == ("", words)


def test_a_breaker_is_open_on_both_and_one_probe_closes_it(two: Nodes) -> None:
    path = two.folder / "there"
    ids = [two["a"].enqueue("flaky", path=str(path)) for _ in range(12)]

    def known(name: str) -> bool:
        return any(each.kind == "breaker" for each in two[name].ask.status().attention)

    eventually(lambda: known("a") and known("b"), "both know that it is open")
    path.write_text("")
    for id in ids:
        assert two["a"].until_ended(id).state is JobState.DONE
    eventually(lambda: not known("a") and not known("b"), "both know that it is closed")
    kinds = Counter(event.type for event in two.all_events(two["a"]))
    assert kinds["breaker_opened"] == kinds["breaker_closed"] == 1


def is_gone(pid: int) -> bool:
    return not is_alive(pid)


# ---- nodes that fall silent --------------------------------------------------------------------


def until_running(two: Nodes, task: str, n: int) -> dict[int, str]:
    """Jobs that run for long, and which node runs each."""
    ids = [two["a"].enqueue(task, path=str(two.folder / f"pid-{i}")) for i in range(n)]
    return {id: two["a"].until_told(id, "action_started").data["node"] for id in ids}


@pytest.mark.parametrize("leads", [True, False], ids=["the leader", "another"])
def test_what_a_dead_node_ran_is_lost_and_run_by_the_other(two: Nodes, leads: bool) -> None:
    leader = two.until_leader()
    [other] = [trial for trial in two.trials.values() if trial is not leader]
    dying, living = (leader, other) if leads else (other, leader)
    running = until_running(two, "hang_once", 4)
    name = dying.folder.name
    theirs = [id for id, node in running.items() if node == name]
    assert theirs
    dying.pull_the_plug()
    living.ask.ask(Act(verb="kill", ids=[str(id) for id in running if id not in theirs]))
    for id in theirs:
        assert living.until_told(id, "action_lost").state == "leased"
        assert living.until_ended(id).state is JobState.DONE
        assert living.told(id).count("action_started") == 2
    states = {row.name: row.state for row in living.ask.ask(ListNodes()).nodes}
    assert states == {name: "lost", living.folder.name: "up"}
    assert [e.data["node"] for e in two.all_events(living) if e.type == "node_lost"] == [name]
    assert two.until_leader() is living
    dying.start()
    ids = dying.enqueue_many("write", 40, path=str(two.folder / "ran"), seconds=0.2)
    for id in ids:
        assert living.until_ended(id).state is JobState.DONE
    assert set(two.ran_on([e for e in two.all_events(living) if e.job in ids])) == {"a", "b"}
    assert two.until_leader() is living
    two.check()


def test_a_node_that_was_stopped_for_long_changes_nothing_and_starts_over(two: Nodes) -> None:
    running = until_running(two, "hang_once", 4)
    stopped = two["a"]
    theirs = [id for id, node in running.items() if node == "a"]
    pids = [int(two.wrote(f"pid-{list(running).index(id)}")[0]) for id in theirs]
    stopped.signal(signal.SIGSTOP)
    two["b"].ask.ask(Act(verb="kill", ids=[str(id) for id in running if id not in theirs]))
    for id in theirs:
        assert two["b"].until_ended(id).state is JobState.DONE
    stopped.signal(signal.SIGCONT)
    for pid in pids:
        eventually(partial(is_gone, pid), "what it ran is ended")
    for id in theirs:
        two["b"].until_told(id, "late_result")
        assert two["b"].job(id).state is JobState.DONE
    eventually(
        lambda: {row.state for row in two["b"].ask.ask(ListNodes()).nodes} == {"up"}, "it is back"
    )
    ids = two["a"].enqueue_many("write", 40, path=str(two.folder / "ran"), seconds=0.2)
    for id in ids:
        two["a"].until_ended(id)
    fresh = [e for e in two.all_events(two["a"]) if e.job in ids]
    assert set(two.ran_on(fresh)) == {"a", "b"}


def test_a_second_node_of_a_name_is_refused_until_the_first_is_gone(two: Nodes) -> None:
    second = two.folder / "second"
    second.mkdir()
    with trial(second, TASKS, HANDLERS, BASE.format(name="a", url=two.url)) as twin:
        twin.program = two["a"].program
        twin.start(ready=False)
        assert twin.process is not None
        assert twin.process.wait(30) == 69
        words = twin.log.read_text()
        assert "a node named a is alive" in words
        assert "give this one a name of its own" in words
        id = two["a"].enqueue("hang_once", path=str(two.folder / "pid"))
        eventually((two.folder / "pid").exists, "the handler hangs, not only its worker has it")
        two["b"].stop()
        two["a"].signal(signal.SIGSTOP)

        def starts() -> bool:
            twin.start(ready=False)
            eventually(
                lambda: not is_up(twin) or "is up as" in twin.log.read_text(), "it is up or gone"
            )
            return is_up(twin)

        eventually(starts, "the name is free once its node is lost")
        two["a"].signal(signal.SIGCONT)
        first = two["a"].process
        assert first is not None
        assert first.wait(30) == 69
        assert "another node took the name a" in two["a"].log.read_text()
        assert twin.until_ended(id).state is JobState.DONE
