"""Any history of workers, operators, late results and crashes leaves the store right.

The machine plays several workers on two nodes, people who change their minds, a clock that
moves, and a process that dies between any two statements. After every step the invariants of
`support.invariants` hold; at the end everything that was accepted can still be finished.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from redrive.config.sections import ManualRetry
from redrive.lifecycle import JobState
from redrived.store import jobs, rescue
from redrived.store.actions import VERBS, Act, act
from redrived.store.beats import Beat, beat
from redrived.store.begin import Begun, begin
from redrived.store.database import Database
from redrived.store.enqueue import NewJob, Order, Placed, enqueue
from redrived.store.give_back import GivenBack, give_back
from redrived.store.group import Entry
from redrived.store.notice import Notice, notice
from redrived.store.picking import Berth, InHand, Room, TaskRules
from redrived.store.promote import KeyLimit, bring_forward, promote
from redrived.store.settle import complete, end
from support.clock import FakeClock
from support.crashes import Killed, dying_after
from support.databases import database as make_database
from support.databases import empty
from support.ground import Ground
from support.invariants import check, check_log

NODES = ("n1", "n2")
ONE_BY_KEY = {"work": TaskRules(keyed=True), "other": TaskRules()}
IN_POOL = {name: TaskRules(pool="p", hand=1000, keyed=name == "work") for name in ONE_BY_KEY}

new_jobs = st.builds(
    NewJob,
    task=st.sampled_from(["work", "other"]),
    queue=st.sampled_from(["default", "bulk"]),
    priority=st.integers(-1, 1),
    rank=st.integers(0, 1),
    max_attempts=st.integers(1, 3),
    unique=st.sampled_from([None, "u1", "u2"]),
    held=st.booleans(),
)


@cache
def one_database(kind: str) -> Database:
    """One for all examples: each begins by emptying it."""
    return next(_open(kind))


def _open(kind: str) -> Iterator[Database]:
    with make_database(kind, Path(tempfile.mkdtemp(prefix="redrive-machine-"))) as made:
        yield made


class StoreMachine(RuleBasedStateMachine):
    kind = "sqlite"

    leased = Bundle("leased")

    def __init__(self) -> None:
        super().__init__()
        database = one_database(self.kind)
        empty(database)
        self.clock = FakeClock()
        self.ground = Ground(database, self.clock)
        self.accepted: set[int] = set()
        self.discarded: set[int] = set()
        self.leases: set[tuple[int, int]] = set()

    # ---- what clients and the clock do -----------------------------------------------------

    @rule(
        orders=st.lists(st.lists(new_jobs, max_size=3), min_size=1, max_size=2), key=st.booleans()
    )
    def enqueue(self, orders: list[list[NewJob]], key: bool) -> None:
        answers = self.ground.commit(
            [Entry(enqueue, self._order(jobs, key), None, must_land=False) for jobs in orders]
        )
        self._accept(answers)

    @rule(job=new_jobs, delay=st.integers(1, 100))
    def enqueue_for_later(self, job: NewJob, delay: int) -> None:
        later = self.clock.now() + delay * 1_000_000
        order = Order(jobs=[replace(job, available_at=later)])
        self._accept([self.ground.do(enqueue, order)])

    @rule(seconds=st.sampled_from([1, 30, 3600, -5]))
    def time_passes(self, seconds: int) -> None:
        self.clock.move(seconds)

    @rule()
    def promote(self) -> None:
        self.ground.do(promote, 2)

    # ---- what workers do -------------------------------------------------------------------

    @rule(target=leased, node=st.sampled_from(NODES), slots=st.integers(1, 3))
    def lease(self, node: str, slots: int) -> Any:
        self.ground.node = node
        return multiple(*self._take(Room(slots=slots, tasks=ONE_BY_KEY)))

    @rule(target=leased, node=st.sampled_from(NODES), n=st.integers(1, 3), empty=st.booleans())
    def lease_into_a_hand(self, node: str, n: int, empty: bool) -> Any:
        self.ground.node = node
        berth = Berth(1, share=(n + 0.5) / 1000, empty=empty)
        return multiple(*self._take(Room(slots=1, tasks=IN_POOL, berths={"p": [berth]})))

    @rule(job=leased)
    def begin(self, job: InHand) -> None:
        self.ground.do(begin, Begun(job.id, job.lease, self.clock.now(), job.attempt))

    @rule(job=leased, twice=st.booleans())
    def complete(self, job: InHand, twice: bool) -> None:
        done = self.ground.completed(job, began_at=self._began(job))
        self.ground.do(complete, [done] * (1 + twice))

    @rule(job=leased, how=st.sampled_from(["retry", "dead", "cancelled", "snooze", "hold"]))
    def end(self, job: InHand, how: str) -> None:
        self.ground.do(end, self._ended(job, how))

    @rule(job=leased)
    def end_twice_at_once(self, job: InHand) -> None:
        ends = [self._ended(job, "dead"), self._ended(job, "snooze")]
        first, second = self.ground.commit([Entry(end, each, None, True) for each in ends])
        assert not (first and second)

    @rule(job=leased)
    def give_back(self, job: InHand) -> None:
        self.ground.do(give_back, [_given(job)])

    @rule(job=leased)
    def beat(self, job: InHand) -> None:
        self.ground.do(beat, Beat(job.id, job.lease, self.clock.now()))

    @rule(job=leased, kind=st.sampled_from(["action_stalled", "action_timeout"]))
    def notice(self, job: InHand, kind: str) -> None:
        if self._began(job) is None:
            said = Notice(
                job=job.id,
                lease=job.lease,
                attempt=job.attempt,
                kind=kind,
                at=self.clock.now(),
                ending="stalled",
            )
            self.ground.do(notice, said)

    # ---- what people do --------------------------------------------------------------------

    @precondition(lambda self: self.accepted)
    @rule(verb=st.sampled_from(sorted(VERBS)), force=st.booleans(), data=st.data())
    def act(self, verb: str, force: bool, data: st.DataObject) -> None:
        known = sorted(self.accepted | self.discarded)
        ids = data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=4))
        manual = ManualRetry(cooldown=10.0, max=3)
        answers = self.ground.do(
            act, Act(verb=verb, jobs=ids, by="ann", force=force, manual=manual)
        )
        assert [answer.id for answer in answers] == ids
        if verb == "discard":
            gone = {answer.id for answer in answers if answer.refused is None}
            assert gone <= self.accepted
            self.accepted -= gone
            self.discarded |= gone

    @rule(most=st.sampled_from([None, 1, 2]))
    def look_at_keys_again(self, most: int | None) -> None:
        self.ground.do(bring_forward, [KeyLimit("work", most)])

    # ---- what nobody wants -----------------------------------------------------------------

    @rule(places=st.integers(0, 30), data=st.data())
    def die_in_the_middle_of_a_group(self, places: int, data: st.DataObject) -> None:
        order = self._order(data.draw(st.lists(new_jobs, max_size=2)), key=True)
        known = sorted(self.accepted)
        group: list[Entry[Any, Any]] = [
            Entry(enqueue, order, None, must_land=False),
            Entry(promote, 5, None, must_land=False),
        ]
        if known:
            verb = data.draw(st.sampled_from(["cancel", "hold", "release", "run-now"]))
            wish = Act(verb=verb, jobs=known[:3], by="ann")
            group.append(Entry(act, wish, None, must_land=False))
        before = len(self.ground.landed)
        try:
            with dying_after(self.ground.database, places):
                self._accept([self.ground.commit(group)[0]])
        except Killed:
            assert len(self.ground.landed) == before

    @rule(node=st.sampled_from(NODES))
    def restart(self, node: str) -> None:
        """A new daemon settles what the one before it left leased."""
        self.ground.node = node
        self._settle_left_behind(node)

    # ---- always ----------------------------------------------------------------------------

    @invariant()
    def everything_is_right(self) -> None:
        check(self.ground)
        there = {job.id for job in self.ground.ask(jobs.get_many, sorted(self.accepted))}
        assert there == self.accepted

    def teardown(self) -> None:
        check_log(self.ground)
        self._finish_everything()
        check(self.ground)
        check_log(self.ground)

    def _finish_everything(self) -> None:
        for node in NODES:
            self.ground.node = node
            self._settle_left_behind(node)
        live = [id for id in sorted(self.accepted) if self.ground.waits(id) == "held"]
        self.ground.do(act, Act(verb="release", jobs=live, by="ann"))
        for _ in range(200):
            self.clock.move(7200)
            self.ground.do(promote, 1000)
            leased = self.ground.lease(10, tasks=ONE_BY_KEY)
            for job in leased.picked.jobs():
                self.ground.finish(job)
            if not leased.again and not leased.picked.slots:
                break
        left = {id for id in self.accepted if self.ground.job(id).state in ("queued", "retry")}
        assert not left, f"accepted, and never to run: {left}"

    # ---- how -------------------------------------------------------------------------------

    def _order(self, new: list[NewJob], key: bool) -> Order:
        keyed = [
            replace(job, limit_key=f"k{job.rank}") if key and job.task == "work" else job
            for job in new
        ]
        return Order(jobs=keyed, by="ann")

    def _accept(self, answers: list[list[Placed]]) -> None:
        for placed in answers:
            self.accepted |= {place.id for place in placed}

    def _take(self, room: Room) -> list[InHand]:
        taken = list(self.ground.do_lease(room).picked.jobs())
        for job in taken:
            assert (job.id, job.lease) not in self.leases, "a lease number was given twice"
            assert all(lease < job.lease for id, lease in self.leases if id == job.id)
            self.leases.add((job.id, job.lease))
        return taken

    def _began(self, job: InHand) -> int | None:
        """What a worker says: nothing when its begin is in the store already."""
        if job.id in self.discarded:
            return None
        row = self.ground.job(job.id)
        return None if row.lease != job.lease or row.started_at else self.clock.now()

    def _ended(self, job: InHand, how: str) -> Any:
        began = self._began(job)
        if how == "dead" or (how in ("retry", "hold") and job.attempt >= job.max_attempts):
            return self.ground.ended(job, JobState.DEAD, began_at=began, reason="exhausted")
        if how == "snooze":
            return self.ground.ended(
                job,
                JobState(job.leased_from),
                began_at=began,
                refund=True,
                snoozes=1,
                available_at=self.clock.now() + 5_000_000,
                events=[("job_snoozed", {})],
            )
        if how == "cancelled":
            return self.ground.ended(
                job, JobState.CANCELLED, began_at=began, events=[("job_cancelled", {})]
            )
        at = self.clock.now() + 60_000_000
        return self.ground.ended(
            job, JobState.RETRY, began_at=began, available_at=at, held=how == "hold"
        )

    def _settle_left_behind(self, node: str) -> None:
        for left in self.ground.ask(rescue.left_behind, node):
            if left.started_at is None:
                self.ground.do(give_back, [_given(left.job)])
            else:
                self.ground.do(end, self._ended(left.job, "retry"))


def _given(job: InHand) -> GivenBack:
    return GivenBack(job.id, job.lease, job.queue, job.task, job.leased_from, job.limit_key)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_any_history_leaves_the_store_right(kind: str) -> None:
    run_state_machine_as_test(
        type("Machine", (StoreMachine,), {"kind": kind}),
        settings=settings(
            max_examples=60 if kind == "sqlite" else 15,
            stateful_step_count=40,
            deadline=None,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )
