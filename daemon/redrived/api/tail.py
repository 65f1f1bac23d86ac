"""The log as it grows, published whole and in order, whichever node wrote it.

What lands here next to what was published last goes out at once, without a question. Where
another node's events lie between, both are read from the store, at the latest in a second.
"""

from __future__ import annotations

from redrived.bus import Bus
from redrived.service import Loop
from redrived.store import events
from redrived.store.store import Store
from redrived.store.unit import Landed

PAGE = 2_000  # events


class Tail(Loop):
    """Used by the main loop only."""

    def __init__(self, store: Store, bus: Bus) -> None:
        super().__init__()
        self.head = 0  # the newest event that was published
        self._store = store
        self._bus = bus

    async def start(self) -> None:
        self.head = await self._store.read(events.head)
        self._store.landed.append(self._look)
        await super().start()

    async def stop(self) -> None:
        self._store.landed.remove(self._look)
        await super().stop()

    async def run_once(self) -> bool:
        if not self._bus.connections["events"]:  # nobody is told anything: no need to read it
            self.head = max(self.head, await self._store.read(events.head))
            return False
        found = await self._store.read(events.after, self.head, PAGE)
        news = [event for event in found if event.seq > self.head]  # some went out meanwhile
        if news:
            self.head = news[-1].seq
            self._bus.publish(news)
        return len(found) == PAGE

    def _look(self, landed: Landed) -> None:
        last = landed.first_seq + len(landed.events) - 1
        if not landed.events or last <= self.head:
            return
        if landed.first_seq == self.head + 1:
            self.head = last
            self._bus.publish(events.announced(landed))
        else:
            self.wake()
