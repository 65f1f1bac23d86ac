"""A policy in a line, as `redrive show` and the console have it."""

from __future__ import annotations

import pytest

from redrive.config.sections import Backoff
from redrive.policy import RetryPolicy
from redrived.api.jobs import describe


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (RetryPolicy(max_attempts=1), "1 attempt, no retry"),
        (
            RetryPolicy(max_attempts=3, backoff=Backoff(first=5, factor=2, cap=600), jitter=0.1),
            "3 attempts, 5 s × 2 up to 10 min, jitter ±10%",
        ),
        (
            RetryPolicy(max_attempts=4, delays=(60.0, 180.0, 7200.0), jitter=0),
            "4 attempts, 60 s, 3 min, 2 h",
        ),
    ],
)
def test_a_policy_is_told_in_the_units_a_person_would_use(policy: RetryPolicy, words: str) -> None:
    assert describe(policy) == words
