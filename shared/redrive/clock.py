"""Time, as something that can be handed in, so that a test can move it.

Instants are whole microseconds since 1970 UTC: exact, small, the same on both databases
and on the wire. People and JSON see ISO 8601.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Annotated, Protocol

import msgspec

Instant = Annotated[int, msgspec.Meta(extra={"instant": True})]

SECOND = 1_000_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock(Protocol):
    """Where the current time comes from."""

    def now(self) -> int:
        """Microseconds since 1970 UTC; may step when the machine's clock is set."""
        ...

    def monotonic(self) -> float:
        """Seconds that never step; for spans, never for storage."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> int:
        return time.time_ns() // 1000

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def iso(instant: int) -> str:
    """ISO 8601 in UTC, always with six digits of microseconds."""
    moment = _EPOCH + timedelta(microseconds=instant)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f") + "Z"


def from_datetime(moment: datetime) -> int:
    """An aware datetime as an instant."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def to_datetime(instant: int) -> datetime:
    return _EPOCH + timedelta(microseconds=instant)
