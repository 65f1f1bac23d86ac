"""Instants: whole microseconds since 1970 UTC, exact, small, the same in both databases and on
the wire. People and JSON see ISO 8601.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

import msgspec

Instant = Annotated[
    int, msgspec.Meta(extra={"instant": True}, extra_json_schema={"format": "date-time"})
]

SECOND = 1_000_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iso(instant: int) -> str:
    """ISO 8601 in UTC, always with six digits of microseconds."""
    moment = _EPOCH + timedelta(microseconds=instant)
    return moment.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def from_iso(text: str) -> int:
    """What `iso` wrote, as an instant again."""
    return from_datetime(datetime.fromisoformat(text))


def from_datetime(moment: datetime) -> int:
    """An aware datetime as an instant."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def to_datetime(instant: int) -> datetime:
    return _EPOCH + timedelta(microseconds=instant)
