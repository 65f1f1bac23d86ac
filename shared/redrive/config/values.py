"""How people write durations, sizes, rates and names, and what a program makes of them.

Every parser takes whatever stood in the file, or on a command line, and either answers with
a plain value or raises a ValueError that says what it got and what it expected.
"""

from __future__ import annotations

import json
import math
import re
from datetime import date, datetime, time
from typing import TypeAlias

from msgspec import Struct

# What a TOML file can hold.
Toml: TypeAlias = "str | int | float | bool | date | datetime | time | list[Toml] | dict[str, Toml]"

DURATION = 'a duration such as "30s", "15m", "1h30m" or a number of seconds'
SIZE = 'a size such as "64M", "1G" or a number of bytes'
RATE = 'a rate such as "5/s", "100/min" or "1000/h"'
NAME = "a name of letters, digits and _ - . : (at most 100)"

_UNIT_SECONDS = {"w": 604_800.0, "d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_DURATION = re.compile("".join(rf"(?:({_NUMBER}){unit}(?![a-z]))?" for unit in _UNIT_SECONDS))
_LONGEST = 100 * 365.25 * 86_400

_SIZE = re.compile(rf"({_NUMBER}) ?([KMGT]?)(?:i?B)?", re.IGNORECASE)
_FACTORS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_LARGEST = (1 << 63) - 1

_RATE = re.compile(r"([0-9]{1,9}) ?/ ?(s|sec|second|m|min|minute|h|hour|d|day)")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,99}")


class RateLimit(Struct, frozen=True):
    """At most `count` in any `per_seconds`."""

    count: int
    per_seconds: float


def parse_duration(value: object) -> float:
    """Seconds, to the microsecond."""
    seconds = _seconds(value)
    if seconds is None or not 0 <= seconds < math.inf:
        raise ValueError(f"got {quoted(value)}, expected {DURATION}")
    if seconds > _LONGEST:
        raise ValueError(f"got {quoted(value)}, expected at most 100 years")
    return round(seconds, 6)


def _seconds(value: object) -> float | None:
    match value:
        case bool():
            return None
        case int():
            return float(min(value, 1 << 62))  # a larger one would not fit a float
        case float():
            return value
        case str() if re.fullmatch(_NUMBER, value):
            return float(value)
        case str() if value and (found := _DURATION.fullmatch(value)):
            parts = zip(found.groups(), _UNIT_SECONDS.values(), strict=True)
            return sum(float(number) * unit for number, unit in parts if number)
        case _:
            return None


def format_duration(seconds: float) -> str:
    """The shortest way to write `seconds` that `parse_duration` reads back."""
    if seconds != round(seconds, 3):
        return f"{seconds:.6f}".rstrip("0") + "s"
    left = round(seconds * 1000)
    text = ""
    for unit in ("d", "h", "m", "s", "ms"):
        count, left = divmod(left, round(_UNIT_SECONDS[unit] * 1000))
        text += f"{count}{unit}" if count else ""
    return text or "0s"


def parse_size(value: object) -> int:
    """Bytes; the multiples are binary."""
    size: float | None = None
    if isinstance(value, int) and not isinstance(value, bool):
        size = value
    elif isinstance(value, str) and (found := _SIZE.fullmatch(value)):
        size = float(found[1]) * _FACTORS[found[2].upper()]
    if size is None or not 1 <= size <= _LARGEST:
        raise ValueError(f"got {quoted(value)}, expected {SIZE}")
    return int(size)


def format_size(size: int) -> str:
    """The shortest exact way to write `size`."""
    for letter in "TGMK":
        if size and size % _FACTORS[letter] == 0:
            return f"{size // _FACTORS[letter]}{letter}"
    return str(size)


def parse_rate(value: object) -> RateLimit:
    found = _RATE.fullmatch(value) if isinstance(value, str) else None
    if found is None or int(found[1]) == 0:
        raise ValueError(f"got {quoted(value)}, expected {RATE}")
    return RateLimit(int(found[1]), _UNIT_SECONDS[found[2][0]])


def parse_name(value: object) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError(f"got {quoted(value)}, expected {NAME}")
    return value


def quoted(value: object) -> str:
    """A value of the file as an error shows it: short, and on one line."""
    match value:
        case str() if len(value) > 60:
            return json.dumps(value[:57] + "...", ensure_ascii=False)
        case str() | bool():
            return json.dumps(value, ensure_ascii=False)
        case int() if abs(value) >= 10**20:
            return "a number of more than 20 digits"
        case dict():
            return "a table"
        case list():
            return "a list"
        case date() | time():
            return value.isoformat()
        case _:
            return str(value)
