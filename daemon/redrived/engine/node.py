"""This node among the others: its row is beaten, theirs are read."""

from __future__ import annotations

import logging
import os

import psutil

from redrive import __version__
from redrive.errors import RedriveError
from redrive.protocol.queries import NodeRow, PoolRow
from redrived.engine.engine import Engine
from redrived.notify import Notifier
from redrived.store import nodes
from redrived.store.nodes import NodeBeat, NodeFacts

BEAT = 2.0  # seconds

log = logging.getLogger(__name__)


class Node:
    def __init__(self, engine: Engine, notifier: Notifier) -> None:
        self.started_at = engine.clock.now()
        self._engine = engine
        self._notifier = notifier

    async def start(self) -> None:
        psutil.cpu_percent()  # the first answer says nothing; later ones are since the last
        await self._engine.store.submit(nodes.arrive, self._beat())
        self._engine.timers.every("node beat", BEAT, self.beat_once)

    async def stop(self) -> None:
        self._engine.timers.cancel("node beat")
        try:
            await self._engine.store.submit(nodes.leave, None)
        except RedriveError as problem:
            log.warning("the node could not sign off: %s", problem)

    async def rows(self) -> list[NodeRow]:
        return await self._engine.store.read(nodes.rows)

    async def beat_once(self) -> None:
        try:
            await self._engine.store.submit(nodes.beat, self._beat())
        except RedriveError as problem:  # a store in trouble; the writer has said so
            log.debug("no beat: %s", problem)

    def _beat(self) -> NodeBeat:
        engine = self._engine
        config = engine.definitions.config
        memory = psutil.virtual_memory()
        return NodeBeat(
            state="up" if engine.dispatcher.is_open else "draining",
            started_at=self.started_at,
            version=__version__,
            slots=config.daemon.concurrency,
            facts=NodeFacts(
                pid=os.getpid(),
                busy=engine.dispatcher.busy().total(),
                cpu=psutil.cpu_percent(),
                memory=memory.used,
                memory_total=memory.total,
                queues=sorted(engine.definitions.queues),
                pools=[
                    PoolRow(
                        name=pool.name,
                        workers=len(pool.workers),
                        busy=pool.busy,
                        trouble=pool.trouble or None,
                    )
                    for pool in engine.python.pools.values()
                ],
            ),
        )
