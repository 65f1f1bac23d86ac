"""Whether a job has ended, by the types of its events."""

from __future__ import annotations

from collections.abc import Iterable

_ENDS = {"action_completed", "step_retry_exhausted", "job_cancelled", "job_killed"}


def has_ended(told: Iterable[str]) -> bool:
    """Who had lost the job may say so even after that."""
    kinds = [kind for kind in told if kind != "late_result"]
    return bool(kinds) and kinds[-1] in _ENDS
