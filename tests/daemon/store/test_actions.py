"""What people do to jobs: every verb against every state, as `redrive.lifecycle` allows it."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import text

from redrive.clock import iso
from redrive.config.sections import ManualRetry
from redrive.errors import NotAllowed, NotFound, TryLater, WrongState
from redrive.lifecycle import JobState, Move, allowed, word_of
from redrived.store.actions import VERBS, Act, Acted, act, rehearse
from redrived.store.enqueue import NewJob
from redrived.store.group import Entry
from redrived.store.ledger import Claim, claim
from redrived.store.picking import TaskRules
from redrived.store.settle import end
from support.clock import FakeClock
from support.ground import Ground
from support.invariants import check, check_log


def new(**more: Any) -> NewJob:
    return NewJob(**{"task": "work", "queue": "default", "max_attempts": 3, **more})


def in_state(ground: Ground, state: JobState) -> int:
    """A job that has come to be in this state, and is held where it can be."""
    [placed] = ground.add(new(held=state is JobState.QUEUED))
    if state is JobState.QUEUED:
        return placed.id
    [job] = ground.take()
    match state:
        case JobState.DONE:
            ground.finish(job)
        case JobState.RETRY:
            ground.fail(job, retry_in=60, held=True)
        case JobState.DEAD:
            ground.fail(job)
        case JobState.CANCELLED:
            ground.do(end, ground.ended(job, state, events=[("job_cancelled", {})]))
        case _:
            pass
    assert ground.job(placed.id).state == state
    return placed.id


def do(ground: Ground, verb: str, *ids: int, **more: Any) -> list[Acted]:
    return ground.do(act, Act(verb=verb, jobs=ids, by="ann", **more))


def do_one(ground: Ground, verb: str, id: int, **more: Any) -> Acted:
    [answer] = do(ground, verb, id, **more)
    return answer


def rehearsal(ground: Ground, verb: str, *ids: int) -> list[Acted]:
    wish = Act(verb=verb, jobs=ids, by="ann")
    return ground.ask(rehearse, ground.database, ground.clock.now(), wish)


def refused(ground: Ground, verb: str, id: int, **more: Any) -> Exception | None:
    return do_one(ground, verb, id, **more).refused


def column(ground: Ground, id: int, name: str) -> Any:
    with ground.database.readers.connect() as connection:
        return connection.execute(text(f"SELECT {name} FROM jobs WHERE id = {id}")).scalar_one()


@pytest.mark.parametrize("state", JobState)
@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_works_exactly_on_the_states_the_lifecycle_allows(
    ground: Ground, verb: str, state: JobState
) -> None:
    id = in_state(ground, state)
    if verb in ("hold", "run-now") and state in (JobState.QUEUED, JobState.RETRY):
        do(ground, "release", id)
    before = ground.events(id)
    [rehearsed] = rehearsal(ground, verb, id)
    assert (ground.job(id).state, ground.events(id)) == (state, before)

    answer = do_one(ground, verb, id)

    assert str(rehearsed.refused) == str(answer.refused)
    if not allowed(VERBS[verb].move, state):
        assert isinstance(answer.refused, WrongState)
        assert f"it is {word_of(state)};" in str(answer.refused)
        assert answer.state == state == ground.job(id).state
        assert ground.events(id) == before
    elif state is JobState.LEASED:
        # What runs cannot be changed here: the wish is noted, the engine ends the attempt.
        assert (answer.running, answer.state, answer.refused) == (1, state, None)
        assert (column(ground, id, "ending"), column(ground, id, "ending_by")) == (verb, "ann")
        assert ground.events(id) == before
    elif verb == "discard":
        assert ground.events(id) == []
        assert ground.counts() == {}
    else:
        assert answer.refused is None
        event = ground.events(id)[-1]
        assert (event.type, event.data["by"]) == (VERBS[verb].event, "ann")
        assert answer.state == ground.job(id).state == event.state
    check(ground)
    check_log(ground)


@pytest.mark.parametrize(("verb", "event"), [("cancel", "job_cancelled"), ("kill", "job_killed")])
@pytest.mark.parametrize("state", [JobState.RETRY, JobState.QUEUED])
def test_a_stop_is_not_forgotten_when_the_attempt_ends_by_itself(
    ground: Ground, verb: str, event: str, state: JobState
) -> None:
    ground.add()
    [job] = ground.take()
    do_one(ground, verb, job.id)
    ground.do(end, ground.ended(job, state, available_at=ground.clock.now() + 1_000_000))

    assert ground.job(job.id).state is JobState.CANCELLED
    last = ground.events(job.id)[-1]
    assert (last.type, last.state, last.data["by"]) == (event, "cancelled", "ann")
    check(ground)
    check_log(ground)


def test_a_restart_is_not_forgotten_when_the_attempt_ends_by_itself(ground: Ground) -> None:
    ground.add(NewJob(task="work", queue="default", max_attempts=3))
    [job] = ground.take()
    do_one(ground, "restart", job.id)
    ground.fail(job, retry_in=60)

    assert ground.told(job.id)[-2:] == ["step_retry", "job_run_now"]
    assert [again.id for again in ground.take()] == [job.id]
    check(ground)
    check_log(ground)


def test_a_restart_that_was_carried_out_is_over(ground: Ground) -> None:
    ground.add()
    [job] = ground.take()
    do_one(ground, "restart", job.id)
    restarted = [("job_restarted", {"by": "ann"})]
    ground.do(end, ground.ended(job, JobState.QUEUED, refund=True, events=restarted))
    assert ground.told(job.id)[-1] == "job_restarted"


def test_every_verb_is_a_move_of_the_lifecycle() -> None:
    for verb in VERBS.values():
        assert verb.move in Move


def test_each_job_of_a_set_has_an_answer_of_its_own(ground: Ground) -> None:
    dead, done = in_state(ground, JobState.DEAD), in_state(ground, JobState.DONE)

    answers = do(ground, "requeue", 99, dead, done, dead)

    assert [answer.id for answer in answers] == [99, dead, done, dead]
    assert isinstance(answers[0].refused, NotFound)
    assert isinstance(answers[2].refused, WrongState)
    assert answers[1] == answers[3]
    assert ground.counts() == {"queued": 1, "done": 1}
    assert ground.told(dead).count("job_requeued") == 1
    check(ground)


def test_a_requeue_is_a_new_life(ground: Ground, clock: FakeClock) -> None:
    id = in_state(ground, JobState.DEAD)
    clock.move(100)
    assert do_one(ground, "requeue", id).state == JobState.QUEUED

    row = ground.job(id)
    assert (row.attempts, row.life, row.available_at, row.reason) == (0, 2, clock.now(), None)
    assert row.budgets is not None
    assert row.budgets.manual_retries == 1
    assert ground.landed[-1].made_ready
    [job] = ground.take()
    assert (job.attempt, job.lease, job.execution, job.life) == (1, 2, 2, 2)
    assert job.life_started_at == clock.now()


def test_a_requeue_soon_after_another_is_refused_until_it_has_cooled_down(
    ground: Ground, clock: FakeClock
) -> None:
    id = in_state(ground, JobState.DEAD)
    assert refused(ground, "requeue", id) is None
    ground.fail(*ground.take())

    clock.move(40)
    problem = refused(ground, "requeue", id)
    assert isinstance(problem, TryLater)
    assert problem.retry_after == 20
    clock.move(20)
    assert refused(ground, "requeue", id) is None


def test_a_job_is_requeued_only_so_often_unless_forced(ground: Ground) -> None:
    id = in_state(ground, JobState.DEAD)
    manual = ManualRetry(cooldown=0.0, max=2)
    for _ in range(2):
        assert refused(ground, "requeue", id, manual=manual) is None
        ground.fail(*ground.take())

    assert isinstance(refused(ground, "requeue", id, manual=manual), NotAllowed)
    assert refused(ground, "requeue", id, manual=manual, force=True) is None
    assert ground.events(id)[-1].data["forced"] is True


def test_a_permanent_failure_is_requeued_only_by_force(ground: Ground) -> None:
    [placed] = ground.add(new())
    ground.fail(*ground.take(), reason="permanent")

    assert isinstance(refused(ground, "requeue", placed.id), NotAllowed)
    assert refused(ground, "requeue", placed.id, force=True) is None


def test_a_job_is_not_requeued_while_its_unique_key_lives_in_another(ground: Ground) -> None:
    dead = []
    for _ in range(2):
        dead += [ground.add(new(unique="u"))[0].id]
        ground.fail(*ground.take())
    other = in_state(ground, JobState.CANCELLED)
    [living] = ground.add(new(unique="u"))

    first, second, third = do(ground, "requeue", *dead, other)

    for answer in (first, second):
        assert isinstance(answer.refused, WrongState)
        assert f"job {living.id} lives" in str(answer.refused)
    assert third.refused is None
    assert ground.job(other).state == JobState.QUEUED


def test_of_two_dead_jobs_with_one_unique_key_only_one_is_requeued(ground: Ground) -> None:
    dead = []
    for _ in range(2):
        dead += [ground.add(new(unique="u"))[0].id]
        ground.fail(*ground.take())

    first, second = do(ground, "requeue", *dead)

    assert first.refused is None
    assert isinstance(second.refused, WrongState)
    check(ground)


def test_only_jobs_still_in_the_expected_state_are_touched(ground: Ground) -> None:
    dead, cancelled = in_state(ground, JobState.DEAD), in_state(ground, JobState.CANCELLED)

    first, second = do(ground, "requeue", dead, cancelled, expected="dead")

    assert first.refused is None
    assert isinstance(second.refused, WrongState)
    assert "left alone" in second.refused.hint


def test_a_stop_wins_over_a_restart_and_a_kill_over_a_cancel(ground: Ground) -> None:
    id = in_state(ground, JobState.LEASED)
    wishes = []
    for verb in ("restart", "cancel", "restart", "kill", "cancel", "restart"):
        do(ground, verb, id)
        wishes.append(column(ground, id, "ending"))

    assert wishes == ["restart", "cancel", "cancel", "kill", "kill", "kill"]


@pytest.mark.parametrize("stop", ["cancel", "kill"])
def test_who_asks_for_a_restart_of_what_is_being_stopped_is_told_so(
    ground: Ground, stop: str
) -> None:
    id = in_state(ground, JobState.LEASED)
    do_one(ground, stop, id)
    refused = do_one(ground, "restart", id).refused
    assert isinstance(refused, WrongState)
    assert refused.message == f"it is being ended, {stop} was asked"


@pytest.mark.parametrize(
    ("verb", "event", "state"),
    [
        ("cancel", "job_cancelled", JobState.CANCELLED),
        ("kill", "job_killed", JobState.CANCELLED),
        ("restart", "job_restarted", JobState.QUEUED),
    ],
)
def test_the_reason_for_ending_an_attempt_is_told_with_its_end(
    ground: Ground, verb: str, event: str, state: JobState
) -> None:
    ground.add(new())
    [job] = ground.take()
    do_one(ground, verb, job.id, data={"reason": "wrong file"})
    ground.do(end, ground.ended(job, state, events=[(event, {"by": "ann"})]))

    last = ground.events(job.id)[-1]
    assert (last.type, last.data) == (event, {"by": "ann", "reason": "wrong file"})
    assert column(ground, job.id, "ending_reason") is None


def test_the_reason_is_not_forgotten_when_the_attempt_ends_by_itself(ground: Ground) -> None:
    ground.add(new())
    [job] = ground.take()
    do_one(ground, "kill", job.id, data={"reason": "wrong file"})
    ground.fail(job, retry_in=60)

    assert ground.events(job.id)[-1].data["reason"] == "wrong file"


def test_a_failure_that_nobody_asked_for_has_no_reason_of_theirs(ground: Ground) -> None:
    ground.add(new())
    [job] = ground.take()
    do_one(ground, "cancel", job.id, data={"reason": "wrong file"})
    ground.fail(job)

    assert all("reason" not in event.data for event in ground.events(job.id))


def test_a_wish_that_comes_too_late_takes_neither_name_nor_reason(ground: Ground) -> None:
    id = in_state(ground, JobState.LEASED)
    do(ground, "kill", id, data={"reason": "wrong file"})
    ground.do(act, Act(verb="cancel", jobs=[id], by="bob", data={"reason": "too slow"}))

    assert (column(ground, id, "ending_by"), column(ground, id, "ending_reason")) == (
        "ann",
        "wrong file",
    )


def test_the_end_of_the_attempt_settles_the_wish(ground: Ground) -> None:
    [placed] = ground.add(new())
    [job] = ground.take()
    do(ground, "cancel", placed.id)
    ground.finish(job)

    assert column(ground, placed.id, "ending") is None
    assert column(ground, placed.id, "ending_by") is None


def test_run_now_drops_the_remaining_wait(ground: Ground, clock: FakeClock) -> None:
    [placed] = ground.add(new())
    ground.fail(*ground.take(), retry_in=600)
    was_due = ground.job(placed.id).available_at or 0
    do(ground, "run-now", placed.id)

    assert ground.events(placed.id)[-1].data["was_due"] == iso(was_due)
    [job] = ground.take()
    assert (job.id, job.attempt) == (placed.id, 2)


def test_what_is_held_is_not_leased_until_released(ground: Ground, clock: FakeClock) -> None:
    [soon, later] = ground.add(new(), new(available_at=clock.now() + 60_000_000))
    do(ground, "hold", soon.id, later.id)
    assert ground.take(2) == []
    assert ground.job(soon.id).held

    do(ground, "release", soon.id, later.id)
    assert (ground.waits(soon.id), ground.waits(later.id)) == ("ready", "due")
    assert ground.landed[-1].sleeps_until == clock.now() + 60_000_000
    assert [job.id for job in ground.take(2)] == [soon.id]


def test_run_now_does_not_start_what_somebody_holds(ground: Ground) -> None:
    [held, other] = ground.add(new(), new())
    do(ground, "hold", held.id)
    assert "held" in str(refused(ground, "run-now", held.id))

    assert ground.job(held.id).held
    assert [job.id for job in ground.take(2)] == [other.id]


def test_hold_and_release_say_when_there_is_nothing_to_do(ground: Ground) -> None:
    [placed] = ground.add()

    assert "not held" in str(refused(ground, "release", placed.id))
    do(ground, "hold", placed.id)
    assert "held already" in str(refused(ground, "hold", placed.id))


def test_discard_takes_along_what_a_job_was_to_do_once(ground: Ground) -> None:
    dead, other = in_state(ground, JobState.DEAD), in_state(ground, JobState.DEAD)
    for id in (dead, other):
        assert ground.do(claim, Claim(f"job:{id}", "mail"))
    do(ground, "discard", dead)
    assert ground.do(claim, Claim(f"job:{dead}", "mail"))
    assert not ground.do(claim, Claim(f"job:{other}", "mail"))


def test_discard_takes_the_events_along_and_leaves_one_line(ground: Ground) -> None:
    kept, dead = in_state(ground, JobState.DEAD), in_state(ground, JobState.DEAD)
    do(ground, "discard", dead)

    assert ground.events(dead) == []
    event = ground.events()[-1]
    assert (event.type, event.job) == ("job_discarded", None)
    assert event.data == {
        "by": "ann",
        "id": dead,
        "task": "work",
        "queue": "default",
        "was": "dead",
    }
    assert isinstance(refused(ground, "requeue", dead), NotFound)
    assert ground.counts() == {"dead": 1}
    assert ground.events(kept)
    check_log(ground)


def test_two_people_at_once_are_taken_one_after_the_other(ground: Ground) -> None:
    id = in_state(ground, JobState.DEAD)
    wishes = [Act(verb=verb, jobs=[id], by="ann") for verb in ("requeue", "discard", "cancel")]
    answers = ground.commit([Entry(act, wish, None, False) for wish in wishes])

    assert [answer.refused is None for [answer] in answers] == [True, False, True]
    assert ground.job(id).state == JobState.CANCELLED
    check(ground)


@pytest.mark.parametrize("verb", ["cancel", "kill", "hold"])
def test_whoever_stands_ready_at_the_head_of_a_key_makes_room_when_taken_away(
    ground: Ground, verb: str
) -> None:
    one = {"work": TaskRules(keyed=True)}
    a, b, c = (place.id for place in ground.add(*[new(limit_key="k")] * 3))
    [running] = ground.lease(5, tasks=one).picked.jobs()
    assert running.id == a
    ground.finish(running)
    assert (ground.waits(b), ground.waits(c)) == ("ready", "key")

    do(ground, verb, b)

    assert ground.waits(c) == "ready"
    check(ground)
