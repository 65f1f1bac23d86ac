"""How often and when a failed job is tried again, by its retry policy alone.

`resolve` turns every way of writing `retry` into one RetryPolicy without gaps. What kind of
failure it was, and what conditions say, is the verdict's business.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from itertools import islice
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from redrive.config.sections import Backoff, Retry
from redrive.errors import UsageProblem

LONGEST_TIMELINE = 100  # attempts; those after are like the last


class RetryPolicy(Struct, frozen=True, kw_only=True):
    """A retry policy with nothing left open; built in as written here."""

    max_attempts: int = 3
    delays: tuple[float, ...] = ()  # empty: backoff
    backoff: Backoff = Backoff()
    jitter: float = 0.1
    retry_when: str | None = None
    stop_when: str | None = None
    unknown: Literal["retry", "once", "dead"] = "retry"
    retry_for: float | None = None
    retry_after_cap: float = 3600.0


class PlannedAttempt(Struct, frozen=True, kw_only=True):
    """One line of a timeline; seconds, as if every attempt failed at once."""

    attempt: int
    delay: float  # before it
    delay_min: float
    delay_max: float
    at: float  # since the first attempt
    at_min: float
    at_max: float


NO_RETRY = RetryPolicy(max_attempts=1)


def resolve(
    retry: bool | int | str | Retry | None, tables: Mapping[str, Retry] | None = None
) -> RetryPolicy:
    """The policy that a task's `retry` means, given the `[retry.*]` tables of the config."""
    tables = tables or {}
    default = _laid_over(RetryPolicy(), tables.get("default", Retry()))
    match retry:
        case None | False:
            return NO_RETRY
        case True:
            return default
        case int():
            return replace(default, max_attempts=retry)
        case str():
            return _laid_over(default, _named(retry, tables))
        case Retry():
            return _laid_over(default, retry)


def delay_before(policy: RetryPolicy, failures: int, roll: float) -> float:
    """Seconds from the latest of `failures` to the next attempt; `roll`, in [0, 1), is the luck."""
    return _planned_delay(policy, failures) * (1 + policy.jitter * (2 * roll - 1))


def timeline(policy: RetryPolicy) -> list[PlannedAttempt]:
    """When each attempt of a life comes if all fail, up to `LONGEST_TIMELINE` of them."""
    return list(islice(_timeline(policy), LONGEST_TIMELINE))


def _timeline(policy: RetryPolicy) -> Iterator[PlannedAttempt]:
    last = PlannedAttempt(
        attempt=1, delay=0.0, delay_min=0.0, delay_max=0.0, at=0.0, at_min=0.0, at_max=0.0
    )
    yield last
    until = float("inf") if policy.retry_for is None else policy.retry_for
    while last.attempt < policy.max_attempts:
        delay = _planned_delay(policy, last.attempt)
        if last.at + delay > until:
            return
        shortest, longest = delay * (1 - policy.jitter), delay * (1 + policy.jitter)
        last = PlannedAttempt(
            attempt=last.attempt + 1,
            delay=delay,
            delay_min=shortest,
            delay_max=longest,
            at=last.at + delay,
            at_min=last.at_min + shortest,
            at_max=min(last.at_max + longest, until),
        )
        yield last


def _planned_delay(policy: RetryPolicy, failures: int) -> float:
    if policy.delays:
        return policy.delays[min(failures, len(policy.delays)) - 1]
    backoff = policy.backoff
    try:
        return min(backoff.first * backoff.factor ** (failures - 1), backoff.cap)
    except OverflowError:
        return backoff.cap


def _laid_over(base: RetryPolicy, written: Retry) -> RetryPolicy:
    """`base` where `written` leaves something out."""
    given = {
        name: value
        for name in written.__struct_fields__
        if (value := getattr(written, name)) is not None
    }
    if written.delays is not None:
        if written.backoff is not None:
            raise UsageProblem(
                "a retry policy has both delays and backoff", hint="keep one of the two"
            )
        given["delays"] = tuple(written.delays)
        given.setdefault("max_attempts", len(written.delays) + 1)
    elif written.backoff is not None:
        given["delays"] = ()
    return replace(base, **given)


def _named(name: str, tables: Mapping[str, Retry]) -> Retry:
    if name in tables:
        return tables[name]
    if name == "default":
        return Retry()
    near = get_close_matches(name, [*tables, "default"], n=1)
    raise UsageProblem(
        f'there is no retry policy "{name}"',
        hint=f'did you mean "{near[0]}"?' if near else f"write it as a table [retry.{name}]",
    )
