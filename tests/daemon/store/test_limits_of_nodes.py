"""Limits that hold for all nodes together: PostgreSQL, two connections, each in mid-commit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import text

from redrive.clock import SECOND
from redrived.store.database import Database
from redrived.store.enqueue import NewJob
from redrived.store.leases import lease
from redrived.store.picking import InHand, QueueRules, Room, TaskRules
from redrived.store.settle import complete
from redrived.store.unit import Unit
from support.clock import FakeClock
from support.databases import postgresql_url
from support.ground import Ground

PATIENCE = 20.0


class Nodes:
    """Two nodes; what the second does waits for the first, or is over."""

    def __init__(self, url: str) -> None:
        clock = FakeClock()
        self.one = Ground(Database(url), clock, "one")
        self.two = Ground(Database(url), clock, "two")
        self._thread = ThreadPoolExecutor(1)

    @contextmanager
    def mid_commit(self, step: Callable[[Unit], Any]) -> Iterator[Any]:
        """The first node has done something and has not committed it yet."""
        with self.one.database.writers.connect() as connection, connection.begin():
            unit = Unit(connection, self.one.database, "one", self.one.clock.now())
            answer = step(unit)
            unit.flush()
            yield answer

    def meanwhile(self, call: Callable[[], Any]) -> Future[Any]:
        """Begin something on the second; back once it waits for the first, or has ended."""
        future = self._thread.submit(call)
        deadline = time.monotonic() + PATIENCE
        while not future.done() and not self._somebody_waits():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return future

    def _somebody_waits(self) -> bool:
        with self.one.database.readers.connect() as connection:
            waiting = connection.execute(
                text(
                    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                    " AND datname = current_database()"
                )
            ).scalar_one()
        return bool(waiting)

    def close(self) -> None:
        self._thread.shutdown()
        self.one.database.close()
        self.two.database.close()


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    made = Nodes(postgresql_url())
    yield made
    made.close()


def taken(room: Room) -> Callable[[Unit], list[InHand]]:
    def take(unit: Unit) -> list[InHand]:
        [leased] = lease(unit, [room])
        return list(leased.picked.jobs())

    return take


ROOMS = {
    "a queue": Room(
        slots=4, tasks={"work": TaskRules()}, queues={"default": QueueRules(concurrency=2)}
    ),
    "a task": Room(slots=4, tasks={"work": TaskRules(concurrency=2)}),
    "a probe": Room(slots=4, tasks={"work": TaskRules(one=True)}),
    "a rate": Room(slots=4, tasks={"work": TaskRules(rate=(2, 60 * SECOND))}),
    "the rate of a queue": Room(
        slots=4,
        tasks={"work": TaskRules()},
        queues={"default": QueueRules(rate=(2, 60 * SECOND))},
    ),
}


@pytest.mark.parametrize("limit", ROOMS)
def test_two_nodes_that_lease_at_once_hold_a_limit_together(nodes: Nodes, limit: str) -> None:
    room = ROOMS[limit]
    nodes.one.add(*[NewJob(task="work", queue="default") for _ in range(8)])
    with nodes.mid_commit(taken(room)) as first:
        second = nodes.meanwhile(lambda: nodes.two.do_lease(room))
    got = [*first, *second.result(PATIENCE).picked.jobs()]
    assert len(got) == len({job.id for job in got}) == (1 if limit == "a probe" else 2)


def test_without_limits_nodes_lease_beside_each_other(nodes: Nodes) -> None:
    room = Room(slots=4, tasks={"work": TaskRules()})
    nodes.one.add(*[NewJob(task="work", queue="default") for _ in range(8)])
    with nodes.one.database.writers.connect() as connection, connection.begin():
        unit = Unit(connection, nodes.one.database, "one", nodes.one.clock.now())
        first = taken(room)(unit)
        with nodes.two.database.writers.connect() as other, other.begin():
            second = taken(room)(Unit(other, nodes.two.database, "two", unit.now))
    assert len({job.id for job in [*first, *second]}) == 8


KEYED = TaskRules(concurrency=1, keyed=True)
WORK, OTHER = Room(slots=4, tasks={"work": KEYED}), Room(slots=4, tasks={"other": KEYED})


def keyed(task: str) -> NewJob:
    return NewJob(task=task, queue="default", limit_key="k")


def test_a_key_is_held_by_one_node(nodes: Nodes) -> None:
    nodes.one.add(keyed("work"), keyed("other"))
    with nodes.mid_commit(taken(WORK)) as first:
        second = nodes.meanwhile(lambda: nodes.two.do_lease(OTHER))
    assert len(first) == 1
    assert list(second.result(PATIENCE).picked.jobs()) == []


def test_a_key_that_becomes_free_while_another_node_finds_it_taken_is_not_forgotten(
    nodes: Nodes,
) -> None:
    nodes.one.add(keyed("work"))
    [running] = nodes.two.do_lease(WORK).picked.jobs()
    nodes.one.add(keyed("work"))
    with nodes.mid_commit(taken(WORK)) as nothing:  # parks the second job
        ended = nodes.meanwhile(lambda: nodes.two.do(complete, [nodes.two.completed(running)]))
    assert nothing == []
    ended.result(PATIENCE)
    assert len(list(nodes.one.do_lease(WORK).picked.jobs())) == 1
