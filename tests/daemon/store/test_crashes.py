"""A history is told again and again, and dies one statement later each time.

Whatever the statement, the store that is opened afterwards holds all that was answered, its
rows, counts and log agree, and the history can be told to its end.
"""

from __future__ import annotations

from typing import Any

import pytest

from redrive.lifecycle import JobState
from redrived.store import job_pages, rescue
from redrived.store.actions import Act, act
from redrived.store.beats import Beat, beat
from redrived.store.begin import Begun, begin
from redrived.store.database import Database
from redrived.store.enqueue import NewJob, Order, enqueue
from redrived.store.give_back import GivenBack, give_back
from redrived.store.group import Entry
from redrived.store.picking import TaskRules
from redrived.store.promote import promote
from redrived.store.schema import migrate
from redrived.store.settle import complete, end
from support.clock import FakeClock
from support.crashes import Killed, dying_after
from support.databases import database as make_database
from support.databases import empty
from support.ground import Ground
from support.invariants import check

KEYED = {"work": TaskRules(keyed=True), "other": TaskRules()}


class Told:
    """What the client of the history was answered before the end came."""

    def __init__(self) -> None:
        self.accepted: set[int] = set()
        self.done: set[int] = set()
        self.discarded: set[int] = set()


def history(ground: Ground, told: Told) -> None:
    """Every operation of the store, alone and in groups."""
    keyed = NewJob(task="work", queue="default", max_attempts=3, limit_key="k")
    later = NewJob(task="other", queue="bulk", available_at=ground.clock.now() + 5_000_000)
    unique = NewJob(task="other", queue="bulk", max_attempts=2, unique="u")
    group = [Entry(enqueue, Order(jobs=new), None, False) for new in ([keyed] * 3, [later, unique])]
    for placed in ground.commit(group):
        told.accepted |= {place.id for place in placed}
    told.accepted |= {
        place.id for place in ground.add(unique, *[NewJob(task="other", queue="default")] * 3)
    }

    [first, *others] = ground.lease(4, tasks=KEYED).picked.jobs()
    ground.clock.move(1)
    ground.commit(
        [
            Entry(complete, [ground.completed(first)], None, True),
            Entry(beat, Beat(others[0].id, others[0].lease, ground.clock.now(), "{}"), None, False),
            Entry(
                end,
                ground.ended(others[0], JobState.RETRY, available_at=ground.clock.now()),
                None,
                True,
            ),
            Entry(complete, [ground.completed(first)], None, True),
        ]
    )
    told.done.add(first.id)
    ground.fail(others[1])

    ground.clock.move(10)
    ground.do(promote, 10)
    hand = ground.hand(1, 3)
    ground.do(begin, Begun(hand[0].id, hand[0].lease, ground.clock.now(), hand[0].attempt))
    ground.commit(
        [
            Entry(complete, [ground.completed(hand[0])], None, True),
            Entry(give_back, [given(job) for job in hand[1:]], None, True),
            Entry(enqueue, Order(jobs=[keyed]), None, False),
        ]
    )
    told.done.add(hand[0].id)
    waiting = hand[1].id
    for verb in ("hold", "release", "run-now", "cancel", "requeue"):
        ground.do(act, Act(verb=verb, jobs=[waiting], by="ann"))
    dead = others[1].id
    ground.commit(
        [
            Entry(act, Act(verb="cancel", jobs=[waiting], by="ann"), None, False),
            Entry(act, Act(verb="discard", jobs=[dead], by="ann"), None, False),
        ]
    )
    told.discarded.add(dead)


def given(job: Any) -> GivenBack:
    return GivenBack(job.id, job.lease, job.queue, job.task, job.leased_from, job.limit_key)


def go_on(ground: Ground) -> None:
    """As a new daemon does: settle what was left leased, then work until nothing waits."""
    held = [job.id for job in ground.ask(job_pages.page, None).jobs if job.held]
    ground.do(act, Act(verb="release", jobs=held, by="ann"))
    for left in ground.ask(rescue.left_behind, ground.node):
        if left.started_at is None:
            ground.do(give_back, [given(left.job)])
        elif left.job.attempt < left.job.max_attempts:
            ground.fail(left.job, retry_in=0)
        else:
            ground.fail(left.job)
    ground.clock.move(3600)
    while True:
        ground.do(promote, 100)
        leased = ground.lease(10, tasks=KEYED)
        for job in leased.picked.jobs():
            ground.finish(job)
        if not leased.again and not leased.picked.slots:
            return


def test_a_death_at_any_statement_loses_nothing_that_was_answered(database: Database) -> None:
    with dying_after(database, None) as countdown:
        history(Ground(database, FakeClock()), Told())
    places = countdown.passed
    assert places > 100

    for place in range(places):
        empty(database)
        ground, told = Ground(database, FakeClock()), Told()
        with pytest.raises(Killed), dying_after(database, place):
            history(ground, told)

        check(ground)
        told.discarded |= {
            event.data["id"] for event in ground.events() if event.type == "job_discarded"
        }
        states = {id: ground.job(id).state for id in told.accepted - told.discarded}
        assert all(states[id] == JobState.DONE for id in told.done)
        go_on(ground)
        check(ground)
        assert set(ground.counts()) <= {"done", "dead", "cancelled"}, f"died at {place}"


def test_a_death_during_the_first_start_is_made_good_by_the_next(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Tables are made in one transaction with the number of the schema."""
    place, has_died = 0, True
    while has_died:
        folder = tmp_path_factory.mktemp("start")
        has_died = not start(Database(f"sqlite:///{folder}/redrive.db"), place)
        with make_database("sqlite", folder) as again:
            Ground(again, FakeClock()).add()
        place += 7  # every place would take its time and tell no more


def start(database: Database, places: int) -> bool:
    try:
        with (
            dying_after(database, places),
            database.writers.connect() as connection,
            connection.begin(),
        ):
            migrate(connection)
    except Killed:
        return False
    return True
