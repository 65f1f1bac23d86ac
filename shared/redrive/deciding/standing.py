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
        Reason.UNKNOWN: "no rule knows the error",
        Reason.POISON: "it was lost too often",
        Reason.ON_LOST: "on_lost is fail",
        Reason.EXPIRED: "the next attempt would be later than retry_for allows",
    }
)


def why_dead(reason: str | None, max_attempts: int) -> str | None:
    """The same words wherever it is asked: of the job, its run or over HTTP."""
    if reason == Reason.EXHAUSTED and max_attempts == 1:
        return "it has no retries"
    return WHY_DEAD.get(reason or "")


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
