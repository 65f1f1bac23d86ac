"""Which node does what only one may do: schedules, gates, sweeps, retention."""

from __future__ import annotations

import logging

from redrive.clock import SECOND, Clock
from redrive.errors import RedriveError
from redrived.engine.timers import Timers
from redrived.store.leaders import lead, resign
from redrived.store.store import Store

LENGTH = 8.0  # seconds that the lead lasts without being renewed
RENEW = 2.0
MARGIN = 2.0  # the holder stops trusting itself so much earlier

log = logging.getLogger(__name__)


class Leadership:
    """On SQLite there is but one node, and it leads. Used by the main loop only."""

    def __init__(self, store: Store, timers: Timers, clock: Clock) -> None:
        self.term = 1
        self._is_alone = store.database.is_sqlite
        self._store = store
        self._timers = timers
        self._clock = clock
        self._trusted_until = 0.0

    @property
    def is_held(self) -> bool:
        """Whether this node leads now; what it then decides may still carry its term."""
        return self._is_alone or self._clock.monotonic() < self._trusted_until

    async def start(self) -> None:
        await self.renew()
        if not self._is_alone:
            self._timers.every("leadership", RENEW, self.renew)

    async def stop(self) -> None:
        if self._is_alone:
            return
        self._timers.cancel("leadership")
        self._trusted_until = 0.0
        try:
            await self._store.submit(resign, None)
        except RedriveError as problem:
            log.info("the lead ends by itself: %s", problem)

    async def renew(self) -> None:
        # Counted from before the question: the row was written later than that.
        asked_at = self._clock.monotonic()
        was_held = self.is_held
        try:
            term = await self._store.submit(lead, round(LENGTH * SECOND))
        except RedriveError as problem:
            log.debug("the lead was not renewed: %s", problem)
            return
        if term is None:
            self._trusted_until = 0.0
            return
        self.term = term
        self._trusted_until = asked_at + LENGTH - MARGIN
        if not was_held:
            log.info("this node leads now (term %d)", term)
