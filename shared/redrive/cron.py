"""When a crontab line fires: what cron's manual says, pure, and nothing that waits for it.

Five fields (minute, hour, day of month, month, day of week) of numbers, names, ranges,
lists and steps; 0 and 7 are Sunday; `@hourly` to `@yearly`. When day of month and day of
week are both restricted, a day that fits either will do, unless one of them begins with
`*` (`*/2`): then both must fit.

Daylight saving is handled as cronie does. A line whose minute or hour begins with `*`
runs by real time: through both passes of the hour that is repeated in autumn, and not at
all in the hour that spring leaves out. Any other line runs by the clock on the wall: once
in a repeated hour (the first pass), and once, at the moment after the gap, for whatever the
gap swallowed.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from calendar import monthrange
from collections.abc import Iterator
from datetime import MAXYEAR, UTC, date, datetime, time, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from msgspec import Struct

from redrive import cron_words


class CronProblem(ValueError):
    """The line is not a crontab line; the message names the field and what was expected."""


class Field(NamedTuple):
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()  # the first stands for the lowest value

    @property
    def expected(self) -> str:
        names = f" or {self.names[0]}-{self.names[-1]}" if self.names else ""
        return f"expected {self.low}-{self.high}{names}, with `*`, `,`, `-` and `/`"


MINUTE = Field("minute", 0, 59)
HOUR = Field("hour", 0, 23)
DAY = Field("day of month", 1, 31)
MONTH = Field(
    "month",
    1,
    12,
    ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
)
WEEKDAY = Field("day of week", 0, 7, ("sun", "mon", "tue", "wed", "thu", "fri", "sat"))

SHORTCUTS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}

_PART = re.compile(r"(?:\*|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/(?P<step>[0-9]+))?")


class Cron(Struct, frozen=True, kw_only=True):
    """A crontab line, understood. `parse_cron` makes them."""

    text: str
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: tuple[int, ...]
    weekdays: frozenset[int]  # 0 is Sunday
    either_day: bool  # day of month or day of week, rather than both
    by_real_time: bool

    def words(self) -> str:
        """The line in plain words where they are short, else as it was written."""
        return cron_words.words(self) or self.text

    def fires(self, after: datetime, zone: ZoneInfo) -> Iterator[datetime]:
        """Every instant after `after` (aware) at which the line fires, in UTC, in order."""
        last = after.astimezone(UTC)
        # A clock set back across midnight repeats the end of the day before.
        for day in self._days(after.astimezone(zone).date() - timedelta(days=1)):
            for moment in self._moments(day, zone, last):
                if moment > last:
                    last = moment
                    yield moment

    def _days(self, first: date) -> Iterator[date]:
        for year in range(first.year, MAXYEAR):
            for month in self.months:
                if (year, month) < (first.year, first.month):
                    continue
                for number in range(1, monthrange(year, month)[1] + 1):
                    day = date(year, month, number)
                    if day >= first and self._is_on(day):
                        yield day

    def _is_on(self, day: date) -> bool:
        in_month = day.day in self.days
        in_week = day.isoweekday() % 7 in self.weekdays
        return in_month or in_week if self.either_day else in_month and in_week

    def _moments(self, day: date, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
        midnight = datetime.combine(day, time())
        offset = _offset(midnight, zone)
        if offset != _offset((midnight + timedelta(days=1)).replace(fold=1), zone):
            yield from sorted(self._moments_around_a_shift(midnight, zone))
            return
        for local in self._local_times(midnight, (after + offset).replace(tzinfo=None)):
            yield (local - offset).replace(tzinfo=UTC)

    def _moments_around_a_shift(self, midnight: datetime, zone: ZoneInfo) -> Iterator[datetime]:
        for local in self._local_times(midnight, midnight):
            first, second = (
                local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)
            )
            if first <= second:
                yield first
                if self.by_real_time:
                    yield second
            elif not self.by_real_time:  # a local time that the shift leaves out
                yield _shift_between(second, first, zone)

    def _local_times(self, midnight: datetime, since: datetime) -> Iterator[datetime]:
        for hour in self.hours:
            if midnight + timedelta(hours=hour + 1) <= since:
                continue
            for minute in self.minutes:
                local = midnight.replace(hour=hour, minute=minute)
                if local >= since:
                    yield local


def parse_cron(text: str) -> Cron:
    """Understand a crontab line, or say which field is wrong and what was expected."""
    line = text.strip().lower()
    fields = SHORTCUTS.get(line, line).split()
    if line.startswith("@") and line not in SHORTCUTS:
        raise CronProblem(f"{text.strip()!r} is unknown, expected {', '.join(SHORTCUTS)}")
    if len(fields) != 5:
        raise CronProblem(
            f"{len(fields)} fields in {text!r}, expected 5: "
            "minute, hour, day of month, month, day of week"
        )
    minute, hour, day, month, weekday = fields
    cron = Cron(
        text=" ".join(text.split()),
        minutes=tuple(sorted(_values(MINUTE, minute))),
        hours=tuple(sorted(_values(HOUR, hour))),
        days=_values(DAY, day),
        months=tuple(sorted(_values(MONTH, month))),
        weekdays=frozenset(value % 7 for value in _values(WEEKDAY, weekday)),
        either_day=not day.startswith("*") and not weekday.startswith("*"),
        by_real_time=minute.startswith("*") or hour.startswith("*"),
    )
    longest = max(monthrange(2024, number)[1] for number in cron.months)  # a leap year
    if not cron.either_day and min(cron.days) > longest:
        raise CronProblem(f"day of month: {day} never comes in month {month}")
    return cron


def _values(field: Field, text: str) -> frozenset[int]:
    return frozenset(value for part in text.split(",") for value in _part(field, part))


def _part(field: Field, text: str) -> range:
    found = _PART.fullmatch(text)
    if found is None:
        raise CronProblem(f"{field.name}: cannot read {text!r}, {field.expected}")
    first, last, step = found["first"], found["last"], int(found["step"] or 1)
    if step == 0:
        raise CronProblem(f"{field.name}: {text!r} steps by 0, expected at least 1")
    if first is None:
        return range(field.low, field.high + 1, step)
    low = _number(field, first)
    if last is None:
        if found["step"]:
            raise CronProblem(
                f"{field.name}: {text!r} steps from one value, "
                f"expected a range, as in {first}-{field.high}/{step}"
            )
        return range(low, low + 1)
    high = _number(field, last)
    if field is WEEKDAY and high == 0 < low:
        high = 7  # fri-sun
    if high < low:
        raise CronProblem(f"{field.name}: {text!r} runs backwards, expected the lower end first")
    return range(low, high + 1, step)


def _number(field: Field, text: str) -> int:
    if text in field.names:
        return field.names.index(text) + field.low
    if not (text.isascii() and text.isdecimal()):
        raise CronProblem(f"{field.name}: {text!r} is unknown, {field.expected}")
    number = int(text)
    if not field.low <= number <= field.high:
        raise CronProblem(f"{field.name}: {number} is out of range, {field.expected}")
    return number


def _offset(local: datetime, zone: ZoneInfo) -> timedelta:
    return zone.utcoffset(local) or timedelta()


def _shift_between(low: datetime, high: datetime, zone: ZoneInfo) -> datetime:
    """The instant between two others at which the zone's clocks are moved."""
    seconds = range(int(low.timestamp()), int(high.timestamp()) + 1)
    before = low.astimezone(zone).utcoffset()
    moved = bisect_left(
        seconds,
        True,
        key=lambda second: datetime.fromtimestamp(second, zone).utcoffset() != before,
    )
    return datetime.fromtimestamp(seconds[moved], UTC)
