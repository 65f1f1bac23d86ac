"""What can be said of an order before anybody knows whether its task exists."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec.structs import asdict

from redrive.errors import UsageProblem
from redrive.instants import SECOND
from redrive.protocol.commands import JobOrder

LARGEST_ARGS = 1024 * 1024  # bytes of JSON
LONGEST_DELAY = 100 * 366 * 86400  # seconds

_FIELDS = ", ".join(JobOrder.__struct_fields__)
_WORD = re.compile(r"[^\x00-\x1f\x7f]{1,200}")


def check(order: JobOrder) -> None:
    """Refuse what no daemon would take."""
    try:
        msgspec.convert(asdict(order), JobOrder)
    except msgspec.ValidationError as error:
        raise UsageProblem(f"this is no order: {error}", hint=f"it has {_FIELDS}") from None
    check_words(("operation", order.operation), ("mode", order.mode), ("unique key", order.unique))
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


def checked_args(args: dict[str, Any]) -> str:
    """Arguments as JSON, unless they are too large."""
    written = msgspec.json.encode(args).decode()
    if len(written) > LARGEST_ARGS:
        raise UsageProblem(
            f"the arguments take {len(written)} bytes, more than {LARGEST_ARGS}",
            hint="put large data in a file or a database and pass where it is",
        )
    return written


def due(order: JobOrder, now: int) -> int | None:
    """When it may begin; None: at once."""
    if order.delay is not None and order.at is not None:
        raise UsageProblem("both a delay and a time were given", hint="give one of them")
    if order.delay is not None:
        if not 0 <= order.delay <= LONGEST_DELAY:
            raise UsageProblem(f"a delay of {order.delay} s is not possible", hint="0 s or more")
        return now + round(order.delay * SECOND)
    return order.at
