"""A clock that moves only when a test says so."""

from __future__ import annotations

import asyncio
import heapq
from itertools import count

from redrive.clock import SECOND

START = 1_790_000_000 * SECOND


class FakeClock:
    def __init__(self, now: int = START) -> None:
        self._now = now
        self._sleepers: list[tuple[int, int, asyncio.Event]] = []
        self._order = count()

    def now(self) -> int:
        return self._now

    def monotonic(self) -> float:
        return self._now / SECOND

    async def sleep(self, seconds: float) -> None:
        awake = asyncio.Event()
        due = self._now + round(seconds * SECOND)
        heapq.heappush(self._sleepers, (due, next(self._order), awake))
        await awake.wait()

    def move(self, seconds: float) -> None:
        """For code that does not sleep: only the time of day changes."""
        self._now += round(seconds * SECOND)

    async def advance(self, seconds: float) -> None:
        """Wake the sleepers whose time comes, in order, each at its own instant."""
        until = self._now + round(seconds * SECOND)
        await _settle()
        while self._sleepers and self._sleepers[0][0] <= until:
            due, _, awake = heapq.heappop(self._sleepers)
            self._now = max(self._now, due)
            awake.set()
            await _settle()
        self._now = until
        await _settle()


async def _settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)
