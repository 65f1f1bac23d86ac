"""How attempts end: fenced by their lease, once each, and late words are only recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import text

from redrive.lifecycle import JobState
from redrived.store.actions import Act, act
from redrived.store.beats import Beat, beat
from redrived.store.begin import Begun, begin
from redrived.store.enqueue import NewJob
from redrived.store.give_back import GivenBack, give_back
from redrived.store.group import Entry
from redrived.store.notice import Notice, notice
from redrived.store.picking import Berth, InHand, TaskRules
from redrived.store.settle import complete, end
from support.clock import FakeClock
from support.ground import Ground
from support.invariants import check, check_log


def given(job: InHand) -> GivenBack:
    return GivenBack(job.id, job.lease, job.queue, job.task, job.leased_from, job.limit_key)


def begun(ground: Ground, job: InHand) -> Begun:
    return Begun(job.id, job.lease, ground.clock.now(), job.attempt)


def column(ground: Ground, id: int, name: str) -> Any:
    with ground.database.readers.connect() as connection:
        return connection.execute(text(f"SELECT {name} FROM jobs WHERE id = {id}")).scalar_one()


def released(ground: Ground) -> tuple[InHand, InHand]:
    """An attempt that lost its lease, and the one that has it now."""
    ground.add(NewJob(task="work", queue="default", max_attempts=5))
    [old] = ground.take()
    ground.fail(old, retry_in=0)
    [new] = ground.take()
    assert new.lease == old.lease + 1
    return old, new


def test_a_success_is_written_whole(ground: Ground, clock: FakeClock) -> None:
    [placed] = ground.add()
    [job] = ground.hand(0, 1)
    clock.move(1)
    began = clock.now()
    clock.move(2)
    done = ground.completed(job, began)._replace(result='{"n": 1}', metrics='{"rows": 2}')

    assert ground.do(complete, [done]) == set()
    row = ground.job(placed.id)
    assert (row.state, row.result, row.metrics) == (JobState.DONE, {"n": 1}, {"rows": 2})
    assert (row.started_at, row.finished_at) == (began, clock.now())
    assert ground.told(placed.id) == ["step_started", "action_started", "action_completed"]
    assert ground.counts() == {"done": 1}


def test_a_job_goes_through_the_states_of_the_trace(ground: Ground, clock: FakeClock) -> None:
    """queued 0/3 → leased 1/3 → retry 1/3 → … → dead 3/3, as the scenario has it."""
    [placed] = ground.add(NewJob(task="work", queue="default", max_attempts=3))
    trace = []
    for retry_in in (0.0, 0.0, None):
        [job] = ground.take()
        ground.fail(job, retry_in=retry_in, reason=None if retry_in == 0 else "exhausted")
        row = ground.job(placed.id)
        trace.append((row.state, row.attempts))

    assert trace == [("retry", 1), ("retry", 2), ("dead", 3)]
    states = [(event.type, event.state, event.attempts) for event in ground.events(placed.id)]
    assert states == [
        ("step_started", "queued", 0),
        ("action_started", "leased", 1),
        ("action_error", "leased", 1),
        ("step_retry", "retry", 1),
        ("action_started", "leased", 2),
        ("action_error", "leased", 2),
        ("step_retry", "retry", 2),
        ("action_started", "leased", 3),
        ("action_error", "leased", 3),
        ("step_retry_exhausted", "dead", 3),
    ]
    assert ground.job(placed.id).reason == "exhausted"


def noticed(ground: Ground, job: InHand, ending: str) -> Notice:
    return Notice(
        job=job.id,
        lease=job.lease,
        attempt=job.attempt,
        kind="action_stalled",
        at=ground.clock.now(),
        ending=ending,
    )


Write = Callable[[Ground, InHand], object]

LATE: dict[str, Write] = {
    "complete": lambda ground, job: ground.finish(job),
    "end": lambda ground, job: ground.fail(job),
    "begin": lambda ground, job: ground.do(begin, begun(ground, job)),
    "give back": lambda ground, job: ground.do(give_back, [given(job)]),
    "beat": lambda ground, job: ground.do(beat, Beat(job.id, job.lease, 1, '{"done": 9}')),
    "notice": lambda ground, job: ground.do(
        notice,
        noticed(ground, job, "x"),
    ),
}


@pytest.mark.parametrize("write", LATE)
def test_what_lost_its_lease_changes_nothing(ground: Ground, write: str) -> None:
    old, new = released(ground)
    before = ground.job(new.id)

    LATE[write](ground, old)

    assert ground.job(new.id) == before
    assert column(ground, new.id, "ending") is None
    check(ground)
    assert ground.finish(new) == set()


@pytest.mark.parametrize(("write", "outcome"), [("complete", "done"), ("end", "dead")])
def test_a_late_result_is_recorded(ground: Ground, write: str, outcome: str) -> None:
    old, new = released(ground)

    LATE[write](ground, old)

    event = ground.events(new.id)[-1]
    assert (event.type, event.attempt, event.state) == ("late_result", 1, None)
    assert event.data == {"lease": old.lease, "outcome": outcome}


def test_a_late_result_of_a_discarded_job_belongs_to_no_job(ground: Ground) -> None:
    """A job's events live as long as its row; nothing would ever remove this one."""
    [placed] = ground.add()
    [job] = ground.take()
    ground.fail(job)
    ground.do(act, Act(verb="discard", jobs=[placed.id], by="ann"))

    assert ground.finish(job) == {placed.id}

    event = ground.events()[-1]
    assert (event.type, event.job) == ("late_result", None)
    assert event.data == {"id": placed.id, "lease": 1, "outcome": "done"}
    check(ground)


def test_of_two_ends_in_one_group_the_first_counts(ground: Ground) -> None:
    [placed] = ground.add()
    [job] = ground.take()
    ends = [ground.ended(job, JobState.DEAD), ground.ended(job, JobState.CANCELLED)]

    assert ground.commit([Entry(end, each, None, True) for each in ends]) == [True, False]

    assert ground.job(placed.id).state == JobState.DEAD
    assert ground.told(placed.id)[-3:] == ["late_result", "action_error", "step_retry_exhausted"]
    check(ground)


def test_a_success_told_twice_in_one_batch_counts_once(ground: Ground) -> None:
    [placed] = ground.add()
    [job] = ground.take()
    done = ground.completed(job)

    assert ground.commit([Entry(complete, [done], None, True), Entry(complete, [done], None, True)])
    assert ground.told(placed.id).count("action_completed") == 1
    assert ground.counts() == {"done": 1}


def test_whoever_ends_an_attempt_first_in_a_group_wins(ground: Ground) -> None:
    """A completion races the sweep that has found its worker lost."""
    [placed] = ground.add()
    [job] = ground.take()
    group: list[Entry[Any, Any]] = [
        Entry(complete, [ground.completed(job)], None, True),
        Entry(end, ground.ended(job, JobState.DEAD, error_type="lost"), None, True),
    ]

    assert ground.commit(group) == [set(), False]
    assert ground.job(placed.id).state == JobState.DONE
    assert ground.events(placed.id)[-1].data["outcome"] == "lost"
    check(ground)


def test_an_attempt_begins_once(ground: Ground) -> None:
    [placed] = ground.add()
    [job] = ground.hand(0, 1)
    ground.do(begin, begun(ground, job))
    ground.commit([Entry(begin, begun(ground, job), None, True)] * 2)

    assert ground.told(placed.id) == ["step_started", "action_started"]
    assert ground.job(placed.id).started_at == ground.clock.now()


def test_a_hand_that_goes_back_costs_nothing_and_leaves_no_trace(ground: Ground) -> None:
    ids = [place.id for place in ground.add(*[NewJob(task="work", queue="default")] * 3)]
    hand = ground.hand(0, 3)

    assert ground.do(give_back, [given(job) for job in hand]) == 3

    assert ground.counts() == {"queued": 3}
    assert all(ground.told(id) == ["step_started"] for id in ids)
    assert [job.lease for job in ground.take(3)] == [2, 2, 2]
    check(ground)


def test_a_retry_in_hand_goes_back_to_retry(ground: Ground) -> None:
    [placed] = ground.add(NewJob(task="work", queue="default", max_attempts=2))
    [job] = ground.take()
    ground.fail(job, retry_in=0)
    [job] = ground.hand(0, 1)
    ground.do(give_back, [given(job)])

    assert (ground.job(placed.id).state, ground.job(placed.id).attempts) == (JobState.RETRY, 1)
    check(ground)


def test_what_has_begun_does_not_go_back(ground: Ground) -> None:
    [placed] = ground.add()
    [job] = ground.hand(0, 1)
    ground.do(begin, begun(ground, job))

    assert ground.do(give_back, [given(job)]) == 0
    assert ground.job(placed.id).state == JobState.LEASED
    check(ground)


def test_what_was_cancelled_in_a_hand_is_cancelled_when_it_comes_back(ground: Ground) -> None:
    [placed] = ground.add()
    [job] = ground.hand(0, 1)
    ground.do(act, Act(verb="cancel", jobs=[placed.id], by="ann"))
    ground.do(give_back, [given(job)])

    assert ground.job(placed.id).state == JobState.CANCELLED
    assert ground.events(placed.id)[-1].data["by"] == "ann"
    check(ground)


def test_a_snooze_returns_to_where_it_came_from_at_no_cost(
    ground: Ground, clock: FakeClock
) -> None:
    [placed] = ground.add()
    [job] = ground.take()
    at = clock.now() + 60_000_000
    snooze = ground.ended(
        job, JobState.QUEUED, refund=True, snoozes=1, available_at=at, events=[("job_snoozed", {})]
    )
    ground.do(end, snooze)

    row = ground.job(placed.id)
    assert (row.state, row.attempts, row.available_at) == (JobState.QUEUED, 0, at)
    assert row.budgets is not None
    assert row.budgets.snoozes == 1
    assert ground.landed[-1].sleeps_until == at
    check(ground)


def test_a_held_retry_waits_for_a_person(ground: Ground) -> None:
    [placed] = ground.add(NewJob(task="work", queue="default", max_attempts=2))
    [job] = ground.take()
    ground.fail(job, retry_in=0, held=True)

    assert ground.waits(placed.id) == "held"
    assert ground.take() == []


def test_the_verdict_keeps_the_error_and_adds_to_the_budgets(ground: Ground) -> None:
    [placed] = ground.add(NewJob(task="work", queue="default", max_attempts=3))
    error = '{"error_type": "lost", "category": "transient", "message": "gone"}'
    for _ in range(2):
        [job] = ground.take()
        ground.fail(
            job, retry_in=0, lost=1, unknown=1, error=error, error_type="lost", fingerprint="f"
        )

    row = ground.job(placed.id)
    assert row.error is not None
    assert row.budgets is not None
    assert (row.error.error_type, row.budgets.lost) == ("lost", 2)
    assert column(ground, placed.id, "unknowns") == 2
    [job] = ground.take()
    assert (job.lost, job.unknowns) == (2, 2)
    ground.finish(job)
    assert ground.job(placed.id).error is None


def test_of_several_beats_in_one_group_the_newest_counts(ground: Ground) -> None:
    [placed] = ground.add()
    [job] = ground.take()
    now = ground.clock.now()
    beats = [
        Beat(job.id, job.lease, now + 1, '{"done": 1}', '{"rows": 1}'),
        Beat(job.id, job.lease, now + 2, '{"done": 2}'),
        Beat(job.id, job.lease, now + 3),
    ]
    ground.commit([Entry(beat, each, None, False) for each in beats])

    row = ground.job(placed.id)
    assert row.progress is not None
    assert (row.heartbeat_at, row.progress.done, row.metrics) == (now + 3, 2, {"rows": 1})


def test_a_stall_is_told_and_remembered_beside_a_cancel(ground: Ground) -> None:
    [placed] = ground.add()
    [job] = ground.take()
    said = noticed(ground, job, "stalled")
    ground.clock.move(1)
    assert ground.do(notice, said)
    assert column(ground, placed.id, "ending") == "stalled"
    ground.do(act, Act(verb="cancel", jobs=[placed.id], by="ann"))
    ground.do(notice, said)

    assert column(ground, placed.id, "ending") == "cancel"
    assert ground.told(placed.id)[-2:] == ["action_stalled", "action_stalled"]
    assert ground.events(placed.id)[-1].at == said.at, "not when it was written down"


@pytest.mark.parametrize("way", ["done", "dead", "retry", "give back", "cancel", "hold"])
def test_when_the_one_in_front_leaves_the_next_of_its_key_comes_forward(
    ground: Ground, way: str
) -> None:
    new = NewJob(task="work", queue="default", max_attempts=2, limit_key="k")
    front, behind = (place.id for place in ground.add(new, new))
    one = {"work": TaskRules(keyed=True)}
    in_pool = {"work": TaskRules(keyed=True, pool="p", hand=2)}
    if way == "give back":
        berth = Berth(0, share=1.0, empty=False)
        [job] = ground.lease(0, tasks=in_pool, berths={"p": [berth]}).picked.jobs()
    else:
        [job] = ground.lease(5, tasks=one).picked.jobs()
    assert ground.waits(behind) == "key"

    match way:
        case "done":
            ground.finish(job)
        case "dead":
            ground.fail(job)
        case "retry":
            ground.fail(job, retry_in=60)
        case "give back":
            ground.do(give_back, [given(job)])
        case verb:
            ground.fail(job, retry_in=0)
            ground.do(act, Act(verb=verb, jobs=[front], by="ann"))

    assert ground.waits(behind) == "ready"
    check(ground)
    check_log(ground)
