"""Two nodes change the same thing at once, on PostgreSQL: one of them is told how it stands."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import pytest

from redrive.errors import WrongState
from redrived.store.actions import Act, Acted, act
from redrived.store.enqueue import NewJob, Order, Placed, enqueue
from redrived.store.group import Entry, Operation
from redrived.store.leases import lease
from redrived.store.picking import Room, TaskRules
from redrived.store.retention import forget_nodes
from redrived.store.runs import NewRun, start
from redrived.store.settle import complete
from redrived.store.unit import Unit
from support.ground import Ground
from support.invariants import check
from support.pair import PATIENCE, Pair
from support.runs import Track, step

KEYED = NewJob(task="work", queue="default", unique="u")
KEYLESS = NewJob(task="work", queue="default")
A_ROOM = Room(slots=1, tasks={"work": TaskRules()})


def a_dead_one(ground: Ground) -> int:
    """The last bearer of the key."""
    [placed] = ground.add(KEYED)
    [job] = ground.take()
    ground.fail(job)
    return placed.id


def requeued(*jobs: int) -> Act:
    return Act(verb="requeue", jobs=jobs, by="ann", force=True)


def test_a_key_that_is_given_another_life_elsewhere_makes_no_second_job(pair: Pair) -> None:
    dead = a_dead_one(pair.one)
    with pair.mid_commit(act, requeued(dead)):
        added = pair.meanwhile(lambda: pair.two.add(KEYED))
    assert added.result(PATIENCE) == [Placed(dead, created=False)]
    check(pair.one)


def test_a_key_that_is_enqueued_elsewhere_refuses_another_life(pair: Pair) -> None:
    dead = a_dead_one(pair.one)
    with pair.mid_commit(enqueue, Order(jobs=[KEYED])) as [placed]:
        acted = pair.meanwhile(lambda: pair.two.do(act, requeued(dead)))
    [answer] = acted.result(PATIENCE)
    assert_refused(answer, f"job {placed.id} lives under its unique key")
    check(pair.one)


def test_of_two_that_bore_a_key_one_is_given_another_life(pair: Pair) -> None:
    first, second = a_dead_one(pair.one), a_dead_one(pair.one)
    with pair.mid_commit(act, requeued(first)):
        acted = pair.meanwhile(lambda: pair.two.do(act, requeued(second)))
    [answer] = acted.result(PATIENCE)
    assert_refused(answer, f"job {first} lives under its unique key")
    check(pair.one)


def assert_refused(answer: Acted, words: str) -> None:
    assert isinstance(answer.refused, WrongState)
    assert answer.refused.message == words


@pytest.mark.parametrize(("verb", "waits"), [("cancel", None), ("hold", "held")])
def test_a_retry_that_is_withdrawn_elsewhere_is_not_let_go_with_the_others(
    pair: Pair, verb: str, waits: str | None
) -> None:
    track = Track(pair.one, step("request", retry_together=True))
    track.start_many(2, batch="b")
    first, second = pair.one.take(2)
    track.fail_job(first, retry_in=0)
    assert pair.one.waits(first.id) == "batch"
    done = pair.two.completed(second)._replace(run_id=second.run_id)
    with pair.mid_commit(act, Act(verb=verb, jobs=[first.id], by="ann")):
        ended = pair.meanwhile(lambda: pair.two.do(complete, [done]))
    ended.result(PATIENCE)
    assert pair.one.waits(first.id) == waits
    check(pair.one)


def test_nodes_that_want_the_same_in_another_order_do_not_wait_for_each_other(pair: Pair) -> None:
    """One ends a step of a batch and starts a run in one commit; the other starts one meanwhile."""
    track = Track(pair.one, step("first"), step("second"))
    track.start(batch="b")
    [job] = pair.one.take()
    done = pair.one.completed(job)._replace(run_id=job.run_id)
    order = track.order([NewRun(batch="b")])
    others: list[Future[Any]] = []

    def let_the_other_begin(unit: Unit, items: Sequence[None]) -> list[None]:
        others.append(pair.meanwhile(lambda: pair.two.do(start, order)))
        return [None] * len(items)

    wanted: list[tuple[Operation[Any, Any], Any]] = [
        (complete, [done]),
        (let_the_other_begin, None),
        (start, order),
    ]
    answers = pair.one.commit([Entry(do, item, None, must_land=False) for do, item in wanted])
    begun = [*answers[2], *others[0].result(PATIENCE)]
    assert [run.created for run in begun] == [True, True]
    check(pair.one)


def test_what_a_forgotten_node_counts_while_it_is_taken_over_is_counted_once(pair: Pair) -> None:
    pair.one.add(*[KEYLESS] * 3)
    with pair.mid_commit(lease, A_ROOM):
        forgot = pair.meanwhile(lambda: pair.two.do(forget_nodes, 0))
    assert forgot.result(PATIENCE) == 1
    assert pair.two.do(forget_nodes, 0) == 1  # what is leased was not counted there before
    assert pair.two.do(forget_nodes, 0) == 0
    assert pair.two.counts() == {"queued": 2, "leased": 1}
    check(pair.two)


def test_what_a_forgotten_node_counts_after_it_was_taken_over_is_counted_anew(pair: Pair) -> None:
    pair.two.add(*[KEYLESS] * 3)
    with pair.mid_commit(forget_nodes, 0):
        leased = pair.meanwhile(lambda: pair.two.take())
    assert len(leased.result(PATIENCE)) == 1
    assert pair.two.counts() == {"queued": 2, "leased": 1}
    check(pair.two)
