"""What can be said of an order before anybody knows whether its task exists."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypedDict, cast

import msgspec
from msgspec.structs import asdict

from redrive import nesting
from redrive.errors import UsageProblem
from redrive.instants import SECOND, Instant, from_datetime
from redrive.models import Json
from redrive.protocol.commands import JobOrder
from redrive.protocol.writing import writing

LARGEST_ARGS = 1024 * 1024  # bytes of JSON
LONGEST_DELAY = 100 * 366 * 86400  # seconds
LARGEST_PRIORITY = 2**31 - 1
LONGEST_TEXT = 2_000  # characters
FIRST_INSTANT = from_datetime(datetime.min.replace(tzinfo=UTC))
LAST_INSTANT = from_datetime(datetime.max.replace(tzinfo=UTC))

_FIELDS = ", ".join(JobOrder.__struct_fields__)
_WORD = re.compile(r"[^\x00-\x1f\x7f]{1,200}")


class Options(TypedDict, total=False):
    """What may be said of a job beside its task and arguments."""

    queue: str | None
    operation: str | None
    mode: str | None
    priority: int | None
    delay: float | None  # seconds
    at: datetime | Instant | None
    unique: str | None
    hold: bool


def order_of(args: Mapping[str, Any] | None, options: Options) -> JobOrder:
    at = options.get("at")
    if isinstance(at, datetime):
        if at.tzinfo is None:
            raise UsageProblem(f"{at} has no time zone", hint="as in `datetime.now(UTC)`")
        at = from_datetime(at)
    given = cast("dict[str, Any]", {**options, "at": at})
    return JobOrder(args=dict(args or {}), **given)


def check(order: JobOrder) -> None:
    """Refuse what no daemon would take."""
    try:
        msgspec.convert(asdict(order), JobOrder)
    except msgspec.ValidationError as error:
        raise UsageProblem(f"this is no order: {error}", hint=f"it has {_FIELDS}") from None
    check_values(order)


def check_values(order: JobOrder) -> None:
    """The same where the types are right."""
    check_words(("operation", order.operation), ("mode", order.mode), ("unique key", order.unique))
    check_numbers(order)
    checked_args(order.args)
    due(order, 0)


def check_words(*words: tuple[str, str | None]) -> None:
    """Refuse what cannot be a word of the caller's own; each comes with what it is."""
    for what, word in words:
        if word is not None and not _WORD.fullmatch(word):
            raise UsageProblem(
                f"the {what} {word[:50]!r} cannot be used",
                hint="1 to 200 characters, none of them a control character",
            )


def check_text(what: str, text: str | None) -> None:
    """Refuse what would weigh on every event it is noted in, or that no database keeps."""
    if text is not None and (len(text) > LONGEST_TEXT or "\0" in text):
        raise UsageProblem(
            f"the {what} {text[:50]!r} cannot be used",
            hint=f"{LONGEST_TEXT:,} characters at most, none of them a NUL",
        )


def check_numbers(order: JobOrder) -> None:
    """Refuse what a database cannot hold, or a calendar does not have."""
    if order.priority is not None and abs(order.priority) > LARGEST_PRIORITY:
        raise UsageProblem(
            f"a priority of {order.priority} is not possible",
            hint=f"from -{LARGEST_PRIORITY} to {LARGEST_PRIORITY}",
        )
    if order.at is not None and not FIRST_INSTANT <= order.at <= LAST_INSTANT:
        raise UsageProblem(
            f"a job cannot wait for the instant {order.at}",
            hint="microseconds since 1970 UTC, in the years 1 to 9999",
        )


def checked_args(args: dict[str, Any]) -> str:
    """Arguments as JSON, unless they are too large, nested too deeply, or no JSON at all."""
    with writing():
        written = msgspec.json.encode(args).decode()
    if len(written) > LARGEST_ARGS:
        raise UsageProblem(
            f"the arguments take {len(written)} bytes, more than {LARGEST_ARGS}",
            hint="put large data in a file or a database and pass where it is",
        )
    # Counting is cheap, and what has few brackets cannot be deep.
    if written.count("[") + written.count("{") > nesting.MOST and nesting.is_deep(args):
        raise UsageProblem(
            f"the arguments are nested more than {nesting.MOST} levels deep",
            hint="pass flatter data",
        )
    if "null" in written and _is_unreal(args):  # as such a number is written, too
        raise UsageProblem(
            "the arguments hold a number that JSON does not have: NaN, or an infinite one",
            hint="leave it out, or pass null or a text",
        )
    return written


def _is_unreal(value: Json) -> bool:
    match value:
        case float():
            return not math.isfinite(value)
        case {**entries}:
            return any(map(_is_unreal, entries.values()))
        case [*items]:
            return any(map(_is_unreal, items))
        case _:
            return False


def due(order: JobOrder, now: int) -> int | None:
    """When it may begin; None: at once."""
    if order.delay is not None and order.at is not None:
        raise UsageProblem("both a delay and a time were given", hint="give one of them")
    if order.delay is not None:
        if not 0 <= order.delay <= LONGEST_DELAY:
            raise UsageProblem(
                f"a delay of {order.delay} s is not possible", hint="from 0 s to 100 years"
            )
        return now + round(order.delay * SECOND)
    return order.at
