"""When a person may requeue: cooldown, cap, permanent, force."""

from __future__ import annotations

from typing import Any

from redrive.config.sections import ManualRetry
from redrive.errors import Exit, NotAllowed, TryLater
from redrive.instants import SECOND
from redrive.manual import refusal

NOW = 1_790_000_000 * SECOND
FACTS: dict[str, Any] = {
    "reason": "exhausted",
    "manual_retries": 0,
    "last_manual_at": None,
    "now": NOW,
    "rules": ManualRetry(),
}


def test_the_first_requeue_is_free() -> None:
    assert refusal(**FACTS) is None


def test_a_cooldown_says_when_it_is_over() -> None:
    refused = refusal(**{**FACTS, "manual_retries": 1, "last_manual_at": NOW - 20 * SECOND})
    assert isinstance(refused, TryLater)
    assert (refused.exit_code, refused.retry_after) == (Exit.TRY_LATER, 40)
    assert "allowed again in 40 s" in str(refused)


def test_a_wait_is_told_as_people_tell_it() -> None:
    hourly = ManualRetry(cooldown=3600.0)
    refused = refusal(**{**FACTS, "rules": hourly, "last_manual_at": NOW - 60 * SECOND})
    assert refused is not None
    assert refused.message == "it was requeued less than 60 min ago"
    assert refused.hint == "allowed again in 59 min, or with --force"


def test_a_wait_that_is_nearly_over_is_not_told_as_over() -> None:
    refused = refusal(**{**FACTS, "last_manual_at": NOW - 60 * SECOND + SECOND // 5})
    assert refused is not None
    assert refused.hint == "allowed again in 1 s, or with --force"


def test_the_cooldown_ends() -> None:
    assert refusal(**{**FACTS, "last_manual_at": NOW - 60 * SECOND}) is None


def test_after_five_there_is_no_more() -> None:
    refused = refusal(**{**FACTS, "manual_retries": 5, "last_manual_at": NOW - 3600 * SECOND})
    assert isinstance(refused, NotAllowed)
    assert refused.exit_code == Exit.NOT_ALLOWED


def test_a_permanent_failure_is_refused_with_its_reason() -> None:
    refused = refusal(**{**FACTS, "reason": "permanent"})
    assert isinstance(refused, NotAllowed)
    assert "permanent" in refused.message


def test_force_overrides_all_of_it() -> None:
    forced = {**FACTS, "reason": "permanent", "manual_retries": 9, "last_manual_at": NOW}
    assert refusal(**forced, force=True) is None
