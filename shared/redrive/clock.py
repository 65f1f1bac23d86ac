"""Time, as something that can be handed in, so that a test can move it."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

from redrive.instants import SECOND, Instant, from_datetime, iso, to_datetime

__all__ = ["SECOND", "Clock", "Instant", "SystemClock", "from_datetime", "iso", "to_datetime"]


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
