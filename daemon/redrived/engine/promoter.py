"""What falls due is made ready at its instant, in chunks between which work goes on."""

from __future__ import annotations

from redrive.clock import Clock
from redrived.engine.timers import Timers
from redrived.service import Loop
from redrived.store.promote import promote
from redrived.store.store import Store
from redrived.store.unit import Landed

CHUNK = 2_000
SWEEP = 30.0  # seconds; should a wake-up ever be lost, nothing sleeps longer than this


class Promoter(Loop):
    """Keeps one timer for the next due instant, and moves what is due to ready."""

    def __init__(self, store: Store, timers: Timers, clock: Clock) -> None:
        super().__init__()
        self._store = store
        self._timers = timers
        self._clock = clock
        self._next_due: int | None = None

    async def start(self) -> None:
        self._store.landed.append(self._look)
        self._timers.every("promoter sweep", SWEEP, self.wake)
        await super().start()
        self.wake()

    async def run_once(self) -> bool:
        self._next_due = None  # what lands from now on may be news to the answer
        promoted = await self._store.submit(promote, CHUNK)
        if promoted.next_due is None:
            return False
        if self._store.by_our_clock(promoted.next_due) <= self._clock.now():
            return True
        self.due_sooner(promoted.next_due)
        return False

    def due_sooner(self, instant: int) -> None:
        """Something new sleeps until `instant`; move the timer if that is sooner."""
        if self._next_due is None or instant < self._next_due:
            self._next_due = instant
            self._timers.at("next due", self._store.by_our_clock(instant), self.wake)

    def _look(self, landed: Landed) -> None:
        if landed.sleeps_until is not None:
            self.due_sooner(landed.sleeps_until)
