"""A crontab line in plain words, for the lines people usually write."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from redrive.cron import Cron

_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)

_EVERY_DAY = "daily at {at}"
_WORKDAYS = frozenset(range(1, 6))


def words(cron: Cron) -> str | None:
    """The words, or `None` when the line itself says it better."""
    days = _days(cron)
    if len(cron.minutes) == len(cron.hours) == 1:
        at = f"{cron.hours[0]:02}:{cron.minutes[0]:02}"
        return None if days is None else days.format(at=at)
    return _pace(cron) if days == _EVERY_DAY else None


def _days(cron: Cron) -> str | None:
    """Which days, with a place for the time; `None` when that takes too many words."""
    every_month, every_weekday = len(cron.months) == 12, len(cron.weekdays) == 7
    every_day = len(cron.days) == 31
    if every_month and every_day and every_weekday:
        return _EVERY_DAY
    if every_month and every_day:
        return _weekdays(cron.weekdays)
    if every_weekday and len(cron.days) == 1:
        (day,) = cron.days
        if every_month:
            return f"at {{at}} on the {_ordinal(day)} of every month"
        if len(cron.months) == 1:
            return f"at {{at}} on {day} {_MONTHS[cron.months[0] - 1]}"
    return None


def _weekdays(numbers: frozenset[int]) -> str:
    if numbers == _WORKDAYS:
        return "Monday to Friday at {at}"
    monday_first = sorted(numbers, key=lambda number: (number - 1) % 7)
    if len(monday_first) == 1:
        return f"every {_WEEKDAYS[monday_first[0]]} at {{at}}"
    return ", ".join(_WEEKDAYS[number][:3] for number in monday_first) + " at {at}"


def _pace(cron: Cron) -> str | None:
    every_hour = len(cron.hours) == 24
    if every_hour and len(cron.minutes) == 60:
        return "every minute"
    if every_hour and len(cron.minutes) == 1:
        return f"hourly at :{cron.minutes[0]:02}" if cron.minutes[0] else "hourly"
    if every_hour and (step := _even_step(cron.minutes, 60)):
        return f"every {step} min"
    if cron.minutes == (0,) and (step := _even_step(cron.hours, 24)):
        return f"every {step} h"
    return None


def _even_step(values: tuple[int, ...], size: int) -> int | None:
    """The step that makes these values, when it also fits across the end of the range."""
    step = size // len(values)
    return step if size % step == 0 and values == tuple(range(0, size, step)) else None


def _ordinal(number: int) -> str:
    if number in (11, 12, 13):
        return f"{number}th"
    return str(number) + {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
