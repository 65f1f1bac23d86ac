"""Tells of attempts that SIGKILL does not end: in disk sleep, or frozen, they stay for hours.

Nothing more can be done about them here. Their slot stays taken and their lease is kept, as
they may still be at work; the end that was asked for follows when they are gone. Those that an
earlier daemon began are told of as well, and have no slot: see `leftovers`.
"""

from __future__ import annotations

import logging

from redrive.clock import Clock
from redrived.engine.attempt import Attempt, Attempts
from redrived.engine.ender import Ender
from redrived.engine.timers import Timers
from redrived.processes.stuck import stuck_words

EVERY = 1.0  # seconds
SAID_EVERY = 60.0  # seconds, in the daemon's log

log = logging.getLogger(__name__)


class Unkillable:
    """Used by the main loop only."""

    def __init__(self, attempts: Attempts, ender: Ender, timers: Timers, clock: Clock) -> None:
        self._attempts = attempts
        self._ender = ender
        self._timers = timers
        self._clock = clock
        self._said: dict[Attempt, float] = {}  # when last

    async def start(self) -> None:
        self._timers.every("unkillable", EVERY, self.look_once)

    async def stop(self) -> None:
        self._timers.cancel("unkillable")

    def look_once(self) -> None:
        stuck = [attempt for attempt in self._attempts if attempt.unkillable]
        for attempt in self._said.keys() - set(stuck):
            del self._said[attempt]
            log.warning("job %d: what could not be killed is gone", attempt.job.id)
        for attempt in stuck:
            self._tell(attempt, self._clock.monotonic())

    def _tell(self, attempt: Attempt, now: float) -> None:
        last = self._said.get(attempt)
        if last is None:
            self._ender.note_unkillable(attempt)
        elif now - last < SAID_EVERY:
            return
        self._said[attempt] = now
        log.error("job %d cannot be ended: %s", attempt.job.id, stuck_words(attempt.unkillable))
