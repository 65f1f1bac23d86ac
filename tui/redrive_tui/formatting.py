"""How things are written on screen: states, times, counts, bars. No terminal needed.

A line is a list of spans, each a text and the role it plays; the theme says what a role
looks like. States are always a glyph and a word, so that colour is never the only sign.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, tzinfo

from rich.cells import cell_len, set_cell_size

from redrive import lifecycle
from redrive.clock import SECOND, to_datetime
from redrive.lifecycle import JobState
from redrive.models import Job, Record
from redrive_tui.sanitize import CUT

Span = tuple[str, str]  # a text and its role
Line = list[Span]

MINUTE, HOUR, DAY = 60, 3600, 86_400
YEAR = 365 * DAY
INDENT = 4  # of what goes on below a line

# East Asian *neutral* characters: their width does not change with the locale.
GLYPHS = {
    "queued": "▸",
    "running": "►",
    "scheduled": "◷",
    "retrying": "↻",
    "done": "✓",
    "dead": "✗",
    "cancelled": "⊘",
    "held": "◌",
}
ASCII_GLYPHS = {
    "queued": ".",
    "running": ">",
    "scheduled": "@",
    "retrying": "~",
    "done": "+",
    "dead": "X",
    "cancelled": "-",
    "held": "=",
}


class Look(Record, frozen=True, kw_only=True):
    """How this terminal wants things written."""

    ascii: bool = False
    zone: tzinfo | None = UTC  # None: that of this machine, as it was at each instant

    def glyph(self, word: str) -> str:
        return (ASCII_GLYPHS if self.ascii else GLYPHS).get(word, " ")

    def state(self, word: str) -> Span:
        """A state as it is shown everywhere: glyph, word, colour."""
        return f"{self.glyph(word)} {word}", word

    def bar(self, share: float, width: int) -> Line:
        """How full something is."""
        full = min(width, max(0, round(share * width)))
        filled, empty = ("#", ".") if self.ascii else ("▰", "▱")
        return [(filled * full, "bar"), (empty * (width - full), "rule")]

    def sparkline(
        self, values: Sequence[float | None], width: int, *, top: float | None = None
    ) -> str:
        """The last `width` values as heights up to `top` or the highest; `·` where none is known."""
        # Never the full block: the lines of neighbouring rows would grow together.
        steps, unknown = (".:-=+*#", " ") if self.ascii else ("▁▂▃▄▅▆▇", "·")
        shown = [None] * (width - len(values)) + list(values)[-width:]
        top = top or max((value for value in shown if value is not None), default=0) or 1
        return "".join(
            unknown if value is None else steps[int(min(1.0, value / top) * 6.999)]
            for value in shown
        )

    def span_bar(self, share: float, width: int) -> str:
        """A length drawn to scale, to half a cell; never nothing."""
        halves = max(1, round(min(share, 1.0) * width * 2))
        if self.ascii:
            return "=" * max(1, halves // 2)
        return "━" * (halves // 2) + "╸" * (halves % 2)

    def time(self, instant: int) -> str:
        return self._local(instant).strftime("%H:%M:%S")

    def time_exact(self, instant: int, now: int) -> str:
        """To the millisecond today, to the minute on another day; as long either way."""
        then = self._local(instant)
        if then.date() == self._local(now).date():
            return then.strftime("%H:%M:%S.%f")[:-3]
        return then.strftime("%d %b %H:%M" if abs(now - instant) < YEAR * SECOND else "%d %b  %Y")

    def moment(self, instant: int, now: int) -> str:
        """A time of day, with as much of a date as is needed to understand it."""
        then, today = self._local(instant), self._local(now)
        days = (today.date() - then.date()).days
        if days == 0:
            return then.strftime("%H:%M:%S")
        if -7 < days < 7:
            return then.strftime("%a %H:%M")
        return then.strftime("%d %b %H:%M" if then.year == today.year else "%d %b %Y")

    def absolute(self, instant: int) -> str:
        """Date, time and zone: what details show."""
        return self._local(instant).strftime("%Y-%m-%d %H:%M:%S %Z")

    def zone_name(self, now: int) -> str:
        return self._local(now).strftime("%Z")

    def _local(self, instant: int) -> datetime:
        return to_datetime(instant).astimezone(self.zone)


def state_word(job: Job, now: int) -> str:
    """The word an operator reads for the state of a job."""
    if job.held:
        return "held"
    if job.state is JobState.QUEUED and (job.available_at or 0) > now:
        return "scheduled"
    return word_of(job.state)


def word_of(state: str) -> str:
    """The word for a state of a job, a run or a step."""
    return "dead" if state == "failed" else lifecycle.word_of(state)


def duration(seconds: float) -> str:
    """A length of time in at most two units: 0.9s, 41s, 4m12s, 1h03m, 3d04h.

    What began after the picture was taken, or before a clock was set back, has lasted nothing.
    """
    seconds = max(0.0, seconds)
    if seconds < 10:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < MINUTE:
        return f"{whole}s"
    if whole < HOUR:
        return f"{whole // MINUTE}m{whole % MINUTE:02d}s"
    if whole < DAY:
        return f"{whole // HOUR}h{whole % HOUR // MINUTE:02d}m"
    return f"{whole // DAY}d{whole % DAY // HOUR:02d}h"


def span(seconds: float) -> str:
    """A length of time in one unit, for lists: 41s, 4m, 2h, 6d."""
    whole = max(0, int(seconds))
    for unit, letter in ((DAY, "d"), (HOUR, "h"), (MINUTE, "m")):
        if whole >= unit:
            return f"{whole // unit}{letter}"
    return f"{whole}s"


def seconds_between(earlier: int, later: int) -> float:
    return (later - earlier) / SECOND


def ago(instant: int, now: int) -> str:
    """`2m ago`; a time that has not come yet is `in 2m`."""
    seconds = seconds_between(instant, now)
    return f"{span(seconds)} ago" if seconds >= 0 else until(instant, now)


def until(instant: int, now: int) -> str:
    seconds = seconds_between(now, instant)
    if seconds <= 0:
        return "now"
    return f"in {duration(seconds) if seconds >= 10 else f'{seconds:.0f}s'}"


def count(number: int, *, exact: bool = True) -> str:
    return f"{number:,}" if exact else f"≈{number:,}"


def plural(number: int, noun: str, many: str = "") -> str:
    return f"{number:,} {noun if number == 1 else many or noun + 's'}"


def size(octets: float) -> str:
    """Bytes in the largest unit that leaves a number before the point: 512B, 2.1G."""
    for unit in ("B", "K", "M", "G"):
        if octets < 1000:
            return f"{octets:.0f}{unit}" if octets >= 100 or unit == "B" else f"{octets:.1f}{unit}"
        octets /= 1024
    return f"{octets:.1f}T"


def per_minute(rate: float) -> str:
    if rate >= 1000:
        return f"{rate / 1000:.1f}k/min"
    return f"{rate:.0f}/min" if rate >= 10 or rate == 0 else f"{rate:.1f}/min"


def percent(share: float) -> str:
    return f"{share * 100:.1f}%" if share < 0.1 else f"{share * 100:.0f}%"


def plain_text(line: Iterable[Span]) -> str:
    return "".join(text for text, _ in line)


def width_of(line: Sequence[Span]) -> int:
    return sum(cell_len(text) for text, _ in line)


def fit(line: Sequence[Span], width: int, *, right: bool = False) -> Line:
    """A line in exactly `width` cells: cut with a mark, or filled up."""
    room = width - width_of(line)
    if room >= 0:
        filler = (" " * room, "")
        return [filler, *line] if right else [*line, filler]
    fitted: Line = []
    left = width - 1
    for text, role in line:
        taken = set_cell_size(text, min(left, cell_len(text)))
        fitted.append((taken, role))
        left -= cell_len(taken)
        if left <= 0:
            break
    return [*fitted, (CUT, "dim")] if width > 0 else []


def wrapped(line: Line, width: int) -> list[Line]:
    """A line on as many as it needs, broken between words.

    What goes on stands under its last span; where that begins far to the right, below the rest.
    """
    if width_of(line) <= width or width <= INDENT:
        return [line]
    text, role = line[-1]
    indent = width_of(line[:-1])
    if indent > width // 2:
        filler = (" " * INDENT, "")
        parts = textwrap.wrap(text.lstrip(), width - INDENT, drop_whitespace=False)
        return [fit(line[:-1], width), *([filler, (part.lstrip(), role)] for part in parts)]
    filler = (" " * indent, "")
    first, *more = textwrap.wrap(text, width - indent, drop_whitespace=False) or [""]
    return [[*line[:-1], (first, role)], *([filler, (part.lstrip(), role)] for part in more)]


def apart(left: Line, right: Line, width: int) -> Line:
    """One line with something at both ends; the right end gives way when there is no room."""
    room = width - width_of(left) - width_of(right)
    return [*left, (" " * room, ""), *right] if room > 0 else fit(left, width)
