"""Where a job stands among its attempts, in words for people."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from redrive.lifecycle import JobState, Reason

WHY_DEAD: Mapping[str, str] = MappingProxyType(
    {
        Reason.EXHAUSTED: "max retries exhausted",
        Reason.PERMANENT: "the error is permanent",
        Reason.STOP_WHEN: "stop_when is true",
        Reason.RETRY_WHEN: "retry_when is false",
        Reason.UNKNOWN: "nobody knows the error",
        Reason.POISON: "it killed its worker too often",
        Reason.ON_LOST: "on_lost is fail",
        Reason.EXPIRED: "its time for retries has passed",
    }
)


def retrying(state: str | None, attempts: int, max_attempts: int) -> str | None:
    """`Retrying (attempt 2/3)`: the second retry of three, whether it waits or runs."""
    match state:
        case JobState.RETRY:
            retry = attempts
        case JobState.LEASED:
            retry = attempts - 1
        case _:
            return None
    return f"Retrying (attempt {retry}/{max_attempts - 1})" if retry > 0 else None
