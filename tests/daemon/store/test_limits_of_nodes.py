"""Limits that hold for all nodes together: PostgreSQL, two connections, each in mid-commit."""

from __future__ import annotations

import pytest

from redrive.clock import SECOND
from redrived.store.actions import Act, act
from redrived.store.enqueue import NewJob
from redrived.store.leases import Leased, lease
from redrived.store.picking import InHand, QueueRules, Room, TaskRules
from redrived.store.settle import complete
from redrived.store.unit import Unit
from support.pair import PATIENCE, Pair


def jobs(leased: Leased) -> list[InHand]:
    return list(leased.picked.jobs())


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
def test_two_nodes_that_lease_at_once_hold_a_limit_together(pair: Pair, limit: str) -> None:
    room = ROOMS[limit]
    pair.one.add(*[NewJob(task="work", queue="default") for _ in range(8)])
    with pair.mid_commit(lease, room) as first:
        second = pair.meanwhile(lambda: pair.two.do_lease(room))
    got = jobs(first) + jobs(second.result(PATIENCE))
    assert len(got) == len({job.id for job in got}) == (1 if limit == "a probe" else 2)


def test_without_limits_nodes_lease_beside_each_other(pair: Pair) -> None:
    room = Room(slots=4, tasks={"work": TaskRules()})
    pair.one.add(*[NewJob(task="work", queue="default") for _ in range(8)])
    with pair.one.database.writers.connect() as connection, connection.begin():
        unit = Unit(connection, pair.one.database, "one", pair.one.clock.now())
        [first] = lease(unit, [room])
        with pair.two.database.writers.connect() as other, other.begin():
            [second] = lease(Unit(other, pair.two.database, "two", unit.now), [room])
    assert len({job.id for job in jobs(first) + jobs(second)}) == 8


KEYED = TaskRules(concurrency=1, keyed=True)
WORK, OTHER = Room(slots=4, tasks={"work": KEYED}), Room(slots=4, tasks={"other": KEYED})


def keyed(task: str) -> NewJob:
    return NewJob(task=task, queue="default", limit_key="k")


def test_a_key_is_held_by_one_node(pair: Pair) -> None:
    pair.one.add(keyed("work"), keyed("other"))
    with pair.mid_commit(lease, WORK) as first:
        second = pair.meanwhile(lambda: pair.two.do_lease(OTHER))
    assert len(jobs(first)) == 1
    assert jobs(second.result(PATIENCE)) == []


def test_a_key_that_becomes_free_while_another_node_finds_it_taken_is_not_forgotten(
    pair: Pair,
) -> None:
    pair.one.add(keyed("work"))
    [running] = jobs(pair.two.do_lease(WORK))
    pair.one.add(keyed("work"))
    with pair.mid_commit(lease, WORK) as nothing:  # parks the second job
        ended = pair.meanwhile(lambda: pair.two.do(complete, [pair.two.completed(running)]))
    assert jobs(nothing) == []
    ended.result(PATIENCE)
    assert len(jobs(pair.one.do_lease(WORK))) == 1


@pytest.mark.parametrize(("verb", "waits"), [("cancel", None), ("hold", "held")])
def test_a_key_that_becomes_free_goes_to_one_that_still_wants_it(
    pair: Pair, verb: str, waits: str | None
) -> None:
    """The next in line is withdrawn at one node just when the key becomes free at another."""
    _, withdrawn, last = pair.one.add(*[keyed("work")] * 3)
    [running] = jobs(pair.two.do_lease(WORK))
    with pair.mid_commit(act, Act(verb=verb, jobs=[withdrawn.id], by="ann")):
        ended = pair.meanwhile(lambda: pair.two.do(complete, [pair.two.completed(running)]))
    ended.result(PATIENCE)
    assert pair.one.waits(withdrawn.id) == waits
    assert [job.id for job in jobs(pair.one.do_lease(WORK))] == [last.id]
