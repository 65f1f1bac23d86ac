"""The watchdog of attempts: deadlines, signs of life, output that grows too large.

A healthy, beating, long job is never touched. Time in which the daemon itself stood still
(a suspended machine, a stopped process, a loaded loop) is nobody's silence, and where output
is the sign of life, neither is what was printed and could not be kept.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from redrive.clock import Clock
from redrived.engine.attempt import Attempt, Attempts, Ending
from redrived.engine.ender import Ender
from redrived.processes.output import Outputs

TICK = 0.25  # seconds
LATE = 0.1  # seconds that a tick may come late before it counts as having stood still
STOOD_STILL = 2.0  # seconds of that which are worth a word in the log

log = logging.getLogger(__name__)


class Watch:
    def __init__(self, attempts: Attempts, ender: Ender, outputs: Outputs, clock: Clock) -> None:
        self.when_passed: list[Callable[[float], None]] = []  # seconds that the daemon was awake
        self._attempts = attempts
        self._ender = ender
        self._outputs = outputs
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
            except Exception:  # a watchdog that dies watches nobody
                log.exception("the watch stumbled; it goes on")
            await self._clock.sleep(TICK)

    def tick(self) -> None:
        now = self._clock.monotonic()
        passed = 0.0 if self._last is None else now - self._last
        self._last = now
        late = passed - TICK
        if late > LATE:
            self._forgive(late)
        for tell in self.when_passed:
            tell(min(passed, TICK + LATE))
        self._ticks += 1
        each_second = self._ticks % round(1 / TICK) == 0
        for attempt in self._attempts:
            try:
                self._look_at(attempt, now, each_second=each_second)
            except Exception:  # of one bad attempt; the others are watched all the same
                log.exception("job %d could not be watched", attempt.job.id)

    def _look_at(self, attempt: Attempt, now: float, *, each_second: bool) -> None:
        if each_second or attempt.floods or attempt.definition.heartbeat_source == "output":
            self._look_at_output(attempt, now)
        if attempt.ending is None:
            self._look_at_life(attempt, now)

    def _forgive(self, late: float) -> None:
        if late > STOOD_STILL:
            log.warning("the daemon stood still for %.1f s; nobody is accused of that", late)
        for attempt in self._attempts:
            attempt.forgive(late)

    def _look_at_output(self, attempt: Attempt, now: float) -> None:
        before, attempt.written = attempt.written, attempt.executor.sample()
        if attempt.written > before and attempt.definition.heartbeat_source == "output":
            attempt.beat(now)
        if attempt.floods:
            self._hold_back(attempt)

    def _hold_back(self, attempt: Attempt) -> None:
        """The disk is everybody's: what is over the limit goes at every look until it is gone."""
        if attempt.ending is None:
            self._ender.end(attempt, Ending.LOG_LIMIT)
        attempt.executor.cut_output(attempt, attempt.definition.task.limits.output)

    def _look_at_life(self, attempt: Attempt, now: float) -> None:
        overdue = attempt.overdue(now)
        falls_late = overdue is None and attempt.falls_late(now)
        if (overdue is Ending.STALLED or falls_late) and not self._would_hear(attempt):
            attempt.beat(now)  # once it can be heard again, it has as long as at its begin
        elif overdue is not None:
            self._ender.end(attempt, overdue)
        elif falls_late:
            self._ender.note_late(attempt, now - attempt.beat_at)

    def _would_hear(self, attempt: Attempt) -> bool:
        """Whether a sign of life would have been noticed."""
        if attempt.definition.heartbeat_source != "output":
            return True
        return attempt.executor.keeps_output() and not self._outputs.look()
