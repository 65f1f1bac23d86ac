"""When a person may give a job another life: cooldown, cap, and what is permanent."""

from __future__ import annotations

from math import ceil

from redrive.config.sections import ManualRetry
from redrive.deciding.because import spell
from redrive.errors import NotAllowed, RedriveError, TryLater
from redrive.instants import SECOND
from redrive.lifecycle import Reason


def refusal(
    *,
    reason: str | None,
    manual_retries: int,
    last_manual_at: int | None,
    now: int,
    rules: ManualRetry,
    force: bool = False,
) -> RedriveError | None:
    """Why a manual requeue is refused, or None. Force overrides all but is recorded."""
    if force:
        return None
    if reason == Reason.PERMANENT:
        return NotAllowed(
            "the failure is permanent: the same attempt would fail again",
            hint="mend the cause, then requeue with --force",
        )
    if manual_retries >= rules.max:
        return NotAllowed(
            f"it has been requeued {manual_retries} times, the most that is allowed",
            hint="requeue with --force, or raise `max` in [retry.manual]",
        )
    if last_manual_at is None:
        return None
    wait = rules.cooldown - (now - last_manual_at) / SECOND
    if wait <= 0:
        return None
    return TryLater(
        f"it was requeued less than {spell(rules.cooldown)} ago",
        hint=f"allowed again in {spell(ceil(wait))}, or with --force",
        retry_after=wait,
    )
