"""Puts jobs into the order of their queue's operations, where that is another one by now."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from redrive.config.sections import Queue
from redrived.service import Loop
from redrived.store import ranks
from redrived.store.ranks import Ranking
from redrived.store.store import Store

CHUNK = 2_000  # jobs in one write


class Order(Loop):
    """At the start, beside the work, and when a reload says so. Used by the main loop only."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store
        self._turn = asyncio.Lock()

    async def start(self) -> None:
        await super().start()
        self.wake()

    def use(self, queues: Mapping[str, Queue]) -> None:
        """Whatever begins to wait from now on is placed by these."""
        self._store.writer.queues = queues

    async def run_once(self) -> bool:
        async with self._turn:
            known = await self._store.read(ranks.orders)
            for name, queue in self._store.writer.queues.items():
                if known.get(name, []) != queue.operations:
                    await self._put_in_order(name, queue.operations)
        return False

    async def _put_in_order(self, queue: str, operations: Sequence[str]) -> None:
        after, is_last = 0, False
        while not is_last:
            ids = await self._store.read(ranks.unfinished, queue, after, CHUNK)
            is_last = len(ids) < CHUNK
            await self._store.submit(ranks.rank, Ranking(queue, operations, ids, is_last))
            after = ids[-1] if ids else after
