"""The attempts that are to come, as `redrive show` and the console have them."""

from __future__ import annotations

from redrive.instants import SECOND
from redrive.lifecycle import JobState
from redrive.models import Job
from redrive.policy import RetryPolicy
from redrived.api.jobs import plan

POLICY = RetryPolicy(max_attempts=3, delays=(5.0, 10.0), jitter=0)


def test_what_follows_a_running_attempt_is_not_planned_for_the_past() -> None:
    running = Job(
        id=1, task="work", queue="default", state=JobState.LEASED, attempts=1, max_attempts=3,
        created_at=0, started_at=0,
    )  # fmt: skip
    assert [each.at for each in plan(running, POLICY, 60 * SECOND)] == [65 * SECOND, 75 * SECOND]


def test_what_waits_is_planned_for_the_time_it_is_due() -> None:
    waiting = Job(
        id=1, task="work", queue="default", state=JobState.RETRY, attempts=1, max_attempts=3,
        created_at=0, started_at=0, available_at=5 * SECOND,
    )  # fmt: skip
    assert [each.at for each in plan(waiting, POLICY, 2 * SECOND)] == [5 * SECOND, 15 * SECOND]
