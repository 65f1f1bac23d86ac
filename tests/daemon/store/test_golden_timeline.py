"""S2's golden timeline and S5's trace, event by event, with a clock that only a test moves."""

from __future__ import annotations

import pytest

from redrive.config.sections import Backoff
from redrive.deciding.facts import Facts, Failed
from redrive.deciding.verdict import Verdict, decide
from redrive.instants import SECOND
from redrive.lifecycle import JobState
from redrive.policy import RetryPolicy
from redrive.rules import Evidence, Rulebook
from redrived.store.enqueue import NewJob
from redrived.store.picking import InHand
from redrived.store.promote import promote
from support.clock import START, FakeClock
from support.ground import Ground

POLICY = RetryPolicy(max_attempts=3, backoff=Backoff(first=1.0, factor=2.0), jitter=0.0)

FAILS = [
    (0, "step_started", "queued", 0),
    (0, "action_started", "leased", 1),
    (1, "action_error", "leased", 1),
    (1, "step_retry", "retry", 1),
    (2, "action_started", "leased", 2),
    (3, "action_error", "leased", 2),
    (3, "step_retry", "retry", 2),
    (5, "action_started", "leased", 3),
]


def verdict(job: InHand, now: int) -> Verdict:
    """What the server decides about an attempt that was answered 503."""
    evidence = Evidence(message="answered 503 Service Unavailable", status=503)
    return decide(
        Facts(
            ended=Failed(Rulebook().classify(evidence), evidence),
            now=now,
            roll=0.5,
            leased_from=JobState(job.leased_from),
            life_started_at=job.life_started_at,
            attempts=job.attempt,
            max_attempts=job.max_attempts,
            policy=POLICY,
        )
    )


def fail_after_a_second(ground: Ground, clock: FakeClock) -> Verdict:
    [job] = ground.take()
    clock.move(1)
    found = verdict(job, clock.now())
    last = "step_retry" if found.state is JobState.RETRY else "step_retry_exhausted"
    ground.fail(
        job,
        retry_in=found.delay,
        reason=found.reason,
        events=[("action_error", {"status": 503}), (last, {"delay": found.delay})],
    )
    return found


def wait(ground: Ground, clock: FakeClock, seconds: float) -> None:
    """Nothing is handed out before it is available; then it is."""
    clock.move(seconds - 0.001)
    assert ground.do(promote, 10).n == 0
    assert ground.take() == []
    clock.move(0.001)
    assert ground.do(promote, 10).n == 1


def told(ground: Ground, id: int) -> list[tuple[float, str, str | None, int | None]]:
    return [
        ((event.at - START) / SECOND, event.type, event.state, event.attempts)
        for event in ground.events(id)
    ]


@pytest.fixture
def third(ground: Ground, clock: FakeClock) -> int:
    """A job that has failed twice, a second into each attempt, and is due again."""
    [placed] = ground.add(NewJob(task="work", queue="default", max_attempts=3))
    assert fail_after_a_second(ground, clock).delay == 1
    wait(ground, clock, 1)
    assert fail_after_a_second(ground, clock).delay == 2
    wait(ground, clock, 2)
    return placed.id


def test_success_on_the_third_attempt(ground: Ground, clock: FakeClock, third: int) -> None:
    [job] = ground.take()
    clock.move(1)
    ground.finish(job)

    assert told(ground, third) == [*FAILS, (6, "action_completed", "done", 3)]
    starts = [event for event in ground.events(third) if event.type == "action_started"]
    assert [event.data.get("is_retry", False) for event in starts] == [False, True, True]


def test_failure_of_the_third_attempt(ground: Ground, clock: FakeClock, third: int) -> None:
    found = fail_after_a_second(ground, clock)

    assert (found.state, found.reason, found.delay) == (JobState.DEAD, "exhausted", None)
    assert told(ground, third) == [
        *FAILS,
        (6, "action_error", "leased", 3),
        (6, "step_retry_exhausted", "dead", 3),
    ]
    clock.move(3600)
    assert ground.do(promote, 10).n == 0
    assert ground.take() == []
