"""The log: dense, in the order of commits, never changed, and the truth about every job."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import text

from redrive.event_types import EVENT_TYPES
from redrive.history import fold_state, history
from redrive.lifecycle import JobState
from redrived.store import events
from redrived.store.actions import Act, act
from redrived.store.database import Database
from redrived.store.enqueue import NewJob, Order, enqueue
from redrived.store.group import Entry
from support.clock import FakeClock
from support.ground import Ground
from support.invariants import check, check_log
from support.open_store import url_of


def test_seq_is_dense_and_in_the_order_of_commits(ground: Ground) -> None:
    for _ in range(5):
        group = [
            Entry(enqueue, Order(jobs=[NewJob(task="work", queue="default")] * 2), None, False)
        ]
        ground.commit(group * 2)
        for job in ground.take(2):
            ground.finish(job)

    log = ground.events()
    assert [event.seq for event in log] == list(range(1, len(log) + 1))
    assert ground.ask(events.head) == len(log)
    check_log(ground)


def test_a_commit_without_events_takes_no_seq(ground: Ground) -> None:
    ground.add()
    ground.hand(1, 1)

    assert ground.landed[-1].events == []
    assert ground.landed[-1].first_seq == 0
    assert ground.ask(events.head) == 1


def test_every_transition_has_one_event_and_the_fold_is_the_row(ground: Ground) -> None:
    [placed] = ground.add(NewJob(task="work", queue="default", max_attempts=2))
    ground.fail(*ground.take(), retry_in=0)
    ground.fail(*ground.take())
    ground.do(act, Act(verb="requeue", jobs=[placed.id], by="ann"))
    ground.finish(*ground.take())

    log = ground.events(placed.id)
    states = [event.state for event in log]
    changes = [a for a, b in zip(states, [None, *states], strict=False) if a != b]
    assert changes == ["queued", "leased", "retry", "leased", "dead", "queued", "leased", "done"]
    assert fold_state(log) == (JobState.DONE, 1)
    assert [(each.life, each.attempt, each.outcome) for each in history(log)] == [
        (1, 1, "failed"),
        (1, 2, "failed"),
        (2, 1, "done"),
    ]
    assert {event.type for event in log} <= set(EVENT_TYPES)
    check(ground)


def test_the_last_executions_are_told_as_the_whole_past_tells_them(ground: Ground) -> None:
    [placed] = ground.add(NewJob(task="work", queue="default", max_attempts=2))
    for _ in range(3):
        ground.fail(*ground.take(), retry_in=0)
        ground.fail(*ground.take())
        ground.do(act, Act(verb="requeue", jobs=[placed.id], by="ann", force=True))

    past = history(ground.events(placed.id))
    assert [each.life for each in past] == [1, 1, 2, 2, 3, 3]
    for n in range(1, 8):
        assert history(*ground.ask(events.last_executions, placed.id, n)) == past[-n:]


def test_what_is_announced_is_what_is_written(ground: Ground) -> None:
    ground.add()
    ground.finish(*ground.take())

    announced = [event for landed in ground.landed for event in events.announced(landed)]
    assert announced == ground.events()


def test_the_moves_of_a_commit_are_what_the_counts_changed_by(ground: Ground) -> None:
    ground.add(*[NewJob(task="work", queue="default")] * 2)
    ground.take(1)

    assert ground.landed[0].moves == {("default", "work", "queued"): 2}
    assert ground.landed[1].moves == {
        ("default", "work", "queued"): -1,
        ("default", "work", "leased"): 1,
    }


def test_the_log_is_read_from_any_place_in_pages(ground: Ground) -> None:
    ground.add(*[NewJob(task="work", queue="default")] * 10)

    assert [event.seq for event in ground.ask(events.after, 4, 3)] == [5, 6, 7]
    assert [event.seq for event in ground.ask(events.newest, 3)] == [8, 9, 10]
    assert ground.ask(events.after, 10, 3) == []
    assert ground.ask(events.oldest) == 1


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_tail_misses_nothing_of_several_nodes(database: Database, clock: FakeClock) -> None:
    """Numbers are given in the order of commits: whoever has read one has read all before it."""
    nodes = [Ground(Database(url_of(database)), clock, f"n{n}") for n in range(3)]

    def work(node: Ground) -> None:
        for _ in range(30):
            node.add(*[NewJob(task="work", queue="default")] * 2)
            for job in node.take(2):
                node.finish(job)

    threads = [threading.Thread(target=work, args=(node,)) for node in nodes]
    with database.readers.connect() as stranger, stranger.begin():
        stranger.execute(text("SELECT count(*) FROM jobs"))  # a transaction that stays open
        for thread in threads:
            thread.start()
        tail: list[int] = []
        reader = Ground(database, clock)
        while any(thread.is_alive() for thread in threads):
            last = tail[-1] if tail else 0
            tail += [event.seq for event in reader.ask(events.after, last, 1_000)]
        # A node that looks while others hold what it sees goes without.
        for job in reader.take(100):
            reader.finish(job)
        last = tail[-1] if tail else 0
        tail += [event.seq for event in reader.ask(events.after, last, 100_000)]
    for node in nodes:
        node.database.close()

    assert tail == list(range(1, len(tail) + 1))
    assert len(tail) == reader.ask(events.head) == 3 * 30 * 2 * 3
    check(reader)
