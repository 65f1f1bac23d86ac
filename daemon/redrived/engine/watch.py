"""The watchdog of attempts: deadlines, signs of life, output that grows too large.

A healthy, beating, long job is never touched. Time in which the daemon itself stood still
(a suspended machine, a stopped process) is nobody's silence.
"""

from __future__ import annotations

import asyncio
import logging

from redrive.clock import Clock
from redrived.engine.attempt import Attempt, Attempts, Ending
from redrived.engine.command_runner import CommandExecutor
from redrived.engine.ender import Ender

TICK = 0.25  # seconds
STOOD_STILL = 2.0  # seconds between two ticks after which the daemon must have been asleep

log = logging.getLogger(__name__)


class Watch:
    def __init__(self, attempts: Attempts, ender: Ender, clock: Clock) -> None:
        self._attempts = attempts
        self._ender = ender
        self._clock = clock
        self._ticks = 0
        self._last: float | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="watch")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            try:
                self.tick()
            except Exception:  # a watchdog that dies of one bad attempt watches nobody
                log.exception("the watch stumbled; it goes on")
            await self._clock.sleep(TICK)

    def tick(self) -> None:
        now = self._clock.monotonic()
        gap = now - self._last if self._last is not None else 0.0
        self._last = now
        if gap > STOOD_STILL:
            log.warning("the daemon stood still for %.1f s; nobody is accused of that", gap)
            for attempt in self._attempts:
                attempt.forgive(gap)
            return
        self._ticks += 1
        looks_at_output = self._ticks % round(1 / TICK) == 0
        for attempt in self._attempts:
            if looks_at_output and isinstance(attempt.executor, CommandExecutor):
                self._look_at_output(attempt, attempt.executor, now)
            if attempt.ending is None and (overdue := attempt.overdue(now)) is not None:
                self._ender.end(attempt, overdue)

    def _look_at_output(self, attempt: Attempt, executor: CommandExecutor, now: float) -> None:
        written, grew = executor.sample()
        if grew and attempt.definition.heartbeat_source == "output":
            attempt.beat(now)
        if written > attempt.definition.task.limits.output and attempt.ending is None:
            self._ender.end(attempt, Ending.LOG_LIMIT)
