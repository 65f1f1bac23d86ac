"""When a schedule's slots are, and which of them to fire after an absence; pure.

A slot is the instant a schedule was meant to fire; the store fires each one once, whoever
asks and however often, so everything here may be asked again.

The slots of `every = "10m"` are the multiples of ten minutes since 1970 UTC, not counted
from a start: a restart shifts none of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from itertools import count, islice, takewhile
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from msgspec import Struct

from redrive.clock import SECOND, from_datetime, to_datetime
from redrive.config.sections import Schedule
from redrive.config.values import format_duration
from redrive.cron import Cron, parse_cron

Missed = Literal["skip", "once", "all"]

# The latest slot, when it is no older than this, is not missed: a busy loop or a restart
# made it late, and even `missed = "skip"` fires it.
ON_TIME = 10 * SECOND

# A clock set back by no more than this is waited for, so that no slot is fired twice by
# the wall; beyond it the time before was the wrong one (cron draws the same line).
CLOCK_WAS_WRONG = 3 * 3600 * SECOND

_MINUTE = 60 * SECOND


class ScheduleProblem(ValueError):
    """The schedule has no slots that can be computed; the message says why."""


class Due(Struct, frozen=True, kw_only=True):
    """What a schedule asks for now, and when to ask again."""

    fire: tuple[int, ...]  # slots, the oldest first
    missed_since: int | None = None  # the oldest slot that is let go
    next: int | None = None


class Timing(Struct, frozen=True, kw_only=True):
    """The times of one schedule: exactly one of `cron`, `every` (microseconds) and `at`."""

    cron: Cron | None = None
    every: int | None = None
    at: int | None = None
    zone: ZoneInfo

    @classmethod
    def of(cls, schedule: Schedule) -> Timing:
        """The times a section of the config asks for; `ValueError` says what is wrong."""
        zone = _zone(schedule.timezone)
        if schedule.cron is not None:
            return cls(cron=parse_cron(schedule.cron), zone=zone)
        if schedule.every is not None:
            every = round(schedule.every * SECOND)
            if every <= 0:
                raise ScheduleProblem(f"every: {schedule.every:g} s is no interval")
            return cls(every=every, zone=zone)
        if schedule.at is not None:
            moment = schedule.at if schedule.at.tzinfo else schedule.at.replace(tzinfo=zone)
            return cls(at=from_datetime(moment), zone=zone)
        raise ScheduleProblem("no times: expected one of cron, every and at")

    def next_after(self, instant: int) -> int | None:
        """The first slot after `instant`; `None` when there is none."""
        return next(self._slots_after(instant), None)

    def slots_between(self, after: int, until: int, limit: int | None = None) -> list[int]:
        """The first `limit` slots after `after`, up to and including `until`."""
        return list(islice(takewhile(lambda slot: slot <= until, self._slots_after(after)), limit))

    def latest_slots(self, after: int, until: int, limit: int) -> list[int]:
        """The last `limit` slots of the same span, in time that grows with `limit` only."""
        # No schedule fires more often than once in its interval, a cron line in a minute.
        window = limit * (self.every or _MINUTE)
        while True:
            start = max(after, until - window)
            slots = self.slots_between(start, until)
            if len(slots) >= limit or start == after:
                return slots[-limit:]
            window *= 2

    def describe(self) -> str:
        """The times in plain words, with the zone where it matters."""
        if self.cron is not None:
            return f"{self.cron.words()} ({self.zone.key})"
        if self.every is not None:
            return f"every {format_duration(self.every / SECOND)}"
        local = to_datetime(self.at or 0).astimezone(self.zone)
        return f"once at {local:%Y-%m-%d %H:%M:%S} ({self.zone.key})"

    def _slots_after(self, instant: int) -> Iterator[int]:
        if self.cron is not None:
            return map(from_datetime, self.cron.fires(to_datetime(instant), self.zone))
        if self.every is not None:
            return count((instant // self.every + 1) * self.every, self.every)
        return iter(() if self.at is None or self.at <= instant else (self.at,))


def catch_up(timing: Timing, missed: Missed, since: int, now: int, max_missed: int) -> Due:
    """Which slots to fire now, and when the next one is.

    `since` is the last slot that was dealt with or, for a schedule that is new, the instant
    it was first seen: what lies before it is nobody's.
    """
    if since > now + CLOCK_WAS_WRONG:
        since = now
    late = timing.latest_slots(since, now, max_missed if missed == "all" else 1)
    fire = [slot for slot in late if missed != "skip" or now - slot <= ON_TIME]
    oldest = timing.next_after(since)
    let_go = oldest is not None and oldest <= now and oldest not in fire[:1]
    return Due(
        fire=tuple(fire),
        missed_since=oldest if let_go else None,
        next=timing.next_after(max(since, now)),
    )


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        near = get_close_matches(name, available_timezones(), n=1)
        hint = f", did you mean {near[0]!r}?" if near else ", expected one like 'Europe/Berlin'"
        raise ScheduleProblem(f"timezone: {name!r} is unknown{hint}") from None
