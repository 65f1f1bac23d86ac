"""Times, amounts and states as people read them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime

from redrive.clock import SECOND, to_datetime
from redrive.lifecycle import JobState, word_of
from redrive.models import Job

_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))
_COLOURS = {
    "running": "cyan",
    "retrying": "yellow",
    "failed": "red",
    "dead": "red",
    "done": "green",
    "cancelled": "bright_black",
    "held": "magenta",
    "PAUSED": "yellow",
    "up": "green",
    "late": "yellow",
    "lost": "red",
}


def now() -> int:
    return time.time_ns() // 1000


def span(seconds: float) -> str:
    """Two units are enough to read: `4m12s`, `3d04h`, `0.8s`."""
    if abs(seconds) < 10:
        return f"{seconds:.1f}s"
    rest = int(abs(seconds))
    sign = "-" if seconds < 0 else ""
    for place, (unit, size) in enumerate(_UNITS):
        if rest >= size:
            count, rest = divmod(rest, size)
            if place == len(_UNITS) - 1:
                return f"{sign}{count}{unit}"
            small, smaller = _UNITS[place + 1]
            return f"{sign}{count}{unit}{rest // smaller:02}{small}"
    return "0s"


def relative(instant: int | None, at: int) -> str:
    """`in 41s`, `2m05s ago`."""
    if instant is None:
        return "-"
    seconds = (instant - at) / SECOND
    return f"in {span(seconds)}" if seconds >= 0 else f"{span(-seconds)} ago"


def absolute(instant: int | None) -> str:
    """In the zone of whoever reads it."""
    if instant is None:
        return "-"
    return to_datetime(instant).astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")


def day(instant: int) -> str:
    """With the zone in which the times of that day are told."""
    return to_datetime(instant).astimezone().strftime("%Y-%m-%d, times in %Z")


def clock_time(instant: int) -> str:
    moment: datetime = to_datetime(instant).astimezone()
    return moment.strftime("%H:%M:%S.") + f"{moment.microsecond // 1000:03}"


def state_of(state: str) -> str:
    """A state alone, of a job whose dates are not known."""
    return word_of(state)


def by_state(states: Mapping[str, int]) -> str:
    """`3 queued, 1 running`."""
    return ", ".join(f"{count:,} {state_of(state)}" for state, count in states.items())


def state_word(job: Job, at: int) -> str:
    """The words of the console, which tell waiting for a date from waiting for a slot."""
    if job.held:
        return "held"
    match job.state:
        case JobState.QUEUED if (job.available_at or 0) > at:
            return "scheduled"
        case state:
            return state_of(state)


def colour_of(word: str) -> str | None:
    return _COLOURS.get(word)


def counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def size(count: float) -> str:
    for unit in ("B", "K", "M", "G"):
        if count < 1024:
            return f"{count:.0f}{unit}" if unit == "B" else f"{count:.1f}{unit}"
        count /= 1024
    return f"{count:.1f}T"
