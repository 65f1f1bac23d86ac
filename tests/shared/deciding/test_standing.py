"""Where a job stands among its attempts, in words for people."""

from __future__ import annotations

import pytest

from redrive.deciding.standing import WHY_DEAD, retrying, why_dead
from redrive.lifecycle import JobState, Reason


@pytest.mark.parametrize(
    ("state", "attempts", "words"),
    [
        (JobState.QUEUED, 0, None),
        (JobState.LEASED, 1, None),
        (JobState.RETRY, 1, "Retrying (attempt 1/3)"),
        (JobState.LEASED, 2, "Retrying (attempt 1/3)"),
        (JobState.RETRY, 2, "Retrying (attempt 2/3)"),
        (JobState.LEASED, 3, "Retrying (attempt 2/3)"),
        (JobState.RETRY, 3, "Retrying (attempt 3/3)"),
        (JobState.LEASED, 4, "Retrying (attempt 3/3)"),
        (JobState.DEAD, 4, None),
        (JobState.DONE, 4, None),
        (None, 2, None),
    ],
)
def test_retries_are_counted_not_executions(
    state: JobState | None, attempts: int, words: str | None
) -> None:
    assert retrying(state, attempts, 4) == words


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_to_be_dead_has_words(reason: Reason) -> None:
    assert WHY_DEAD[reason]


def test_who_had_one_attempt_has_no_retries_to_exhaust() -> None:
    assert why_dead("exhausted", 1) == "it has no retries"
    assert why_dead("exhausted", 2) == "max retries exhausted"
    assert why_dead("permanent", 1) == WHY_DEAD["permanent"]
