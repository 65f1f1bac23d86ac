"""Opens the gates of batches when their timers have run out.

The instants lie in the store, so a restart loses none; any node may open a gate, and a gate
that two of them open lets each run through once.
"""

from __future__ import annotations

from redrive.clock import Clock
from redrived.engine.timers import Timers
from redrived.service import Loop
from redrived.store.gates import open_gates
from redrived.store.store import Store
from redrived.store.unit import Landed

CHUNK = 500  # runs let through in one go, so that other work goes on in between
SWEEP = 15.0  # seconds; should the node that set a timer be gone, another one sees it


class Gates(Loop):
    def __init__(self, store: Store, timers: Timers, clock: Clock) -> None:
        super().__init__()
        self._store = store
        self._timers = timers
        self._clock = clock
        self._next_at: int | None = None

    async def start(self) -> None:
        self._store.landed.append(self._look)
        self._timers.every("gates sweep", SWEEP, self.wake)
        await super().start()
        self.wake()

    async def run_once(self) -> bool:
        self._next_at = None  # what lands from now on may be news to the answer
        opened = await self._store.submit(open_gates, CHUNK)
        if opened.next_at is None:
            return False
        if self._store.by_our_clock(opened.next_at) <= self._clock.now():
            return opened.runs > 0  # with nobody let through, another node is at it
        self.due_sooner(opened.next_at)
        return False

    def due_sooner(self, instant: int) -> None:
        """A gate is to open at `instant`; move the timer if that is sooner."""
        if self._next_at is None or instant < self._next_at:
            self._next_at = instant
            self._timers.at("gate", self._store.by_our_clock(instant), self.wake)

    def _look(self, landed: Landed) -> None:
        if landed.gate_opens_at is not None:
            self.due_sooner(landed.gate_opens_at)
