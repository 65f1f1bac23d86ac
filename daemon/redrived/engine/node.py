"""This node among the others: its row is beaten, theirs are watched.

On PostgreSQL the leader looks for nodes that have fallen silent, and what a lost one had
leased goes through the same verdict as anything that was lost. A node that finds itself
given up ends what it no longer holds; one whose name is another's by now goes.
"""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Callable
from pathlib import Path

import psutil

from redrive import __version__
from redrive.clock import SECOND
from redrive.errors import AlreadyRunning, RedriveError
from redrive.protocol.rows import PoolRow
from redrived.engine.engine import Engine
from redrived.engine.health import Health
from redrived.notify import Notifier
from redrived.store import nodes
from redrived.store.nodes import LATE, LOST, NodeBeat, NodeFacts
from redrived.store.picking import InHand
from redrived.store.rescue import LeftBehind, left_behind

BEAT = 2.0  # seconds

log = logging.getLogger(__name__)


class Node:
    """Used by the main loop only."""

    def __init__(
        self,
        engine: Engine,
        notifier: Notifier,
        give_up: Callable[[RedriveError], None] = lambda problem: None,
    ) -> None:
        self.health = Health(engine, notifier)
        self._engine = engine
        self._give_up = give_up
        self._home = _home(engine.state_dir)
        self._started_at = engine.clock.now()
        self._beaten_at = self._steady_since = engine.clock.monotonic()
        self._rescued: set[tuple[int, int]] = set()  # leases of lost nodes, already settled

    async def arrive(self) -> None:
        """Take the name, before anything is done in it; refused while another node bears it."""
        psutil.cpu_percent()  # the first answer says nothing; later ones are since the last
        await self._engine.store.submit(nodes.arrive, self._beat())
        # From here on: to end what an earlier daemon left may take longer than a node may be silent.
        self._engine.timers.every("node beat", BEAT, self.beat_once)

    async def start(self) -> None:
        await self.health.start()

    async def stop(self) -> None:
        await self.health.stop()
        self._engine.timers.cancel("node beat")
        try:
            await self._engine.store.submit(nodes.leave, self._home)
        except RedriveError as problem:
            log.warning("the node could not sign off: %s", problem)

    async def beat_once(self) -> None:
        """Tell of this node, then look after the others."""
        try:
            asked_at = self._engine.clock.monotonic()
            before = await self._engine.store.submit(nodes.beat, self._beat())
            self._engine.measures.writes.note(self._engine.clock.monotonic() - asked_at)
            self._note_beat()
            if before == "lost":
                await self._engine.peers.look_at_leases()
            if self._may_accuse:
                await self._look_after_others()
        except AlreadyRunning as problem:
            self._give_up(problem)
        except RedriveError as problem:  # a store in trouble; the writer has said so
            log.debug("no beat: %s", problem)

    @property
    def _may_accuse(self) -> bool:
        """Who was away itself, or whose database was, accuses nobody of silence."""
        engine = self._engine
        steady = self._beaten_at - self._steady_since >= LOST / SECOND
        return not engine.store.database.is_sqlite and engine.leadership.is_held and steady

    def _note_beat(self) -> None:
        now = self._engine.clock.monotonic()
        if now - self._beaten_at > LATE / SECOND:
            self._steady_since = now
        self._beaten_at = now

    async def _look_after_others(self) -> None:
        store = self._engine.store
        for missed in await store.submit(nodes.look_for_missing, self._engine.leadership.term):
            log.warning("node %s is %s", missed.name, missed.state)
        left: list[LeftBehind] = []
        for name in await store.read(nodes.lost):
            left += await store.read(left_behind, name)
        new = [each for each in left if _lease(each.job) not in self._rescued]
        self._engine.rescuer.settle(new)
        self._rescued = {_lease(each.job) for each in left}
        if new:
            log.warning("lost nodes left %d jobs leased; they are settled", len(new))

    def _beat(self) -> NodeBeat:
        engine = self._engine
        config = engine.definitions.config
        memory = psutil.virtual_memory()
        return NodeBeat(
            state="up" if engine.dispatcher.is_open else "draining",
            started_at=self._started_at,
            version=__version__,
            slots=config.daemon.concurrency,
            facts=NodeFacts(
                pid=os.getpid(),
                home=self._home,
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
                        trouble=pool.trouble or pool.preload_failed or None,
                    )
                    for pool in engine.python.pools.values()
                ],
            ),
        )


def _lease(job: InHand) -> tuple[int, int]:
    return job.id, job.lease


def _home(folder: Path) -> str:
    """What tells this node from another of its name: a word kept in its state directory."""
    path = folder / "node.id"
    known = path.read_text().strip() if path.exists() else ""
    if not known:  # none yet, or a full disk has kept no word of it
        known = uuid.uuid4().hex
        fresh = path.with_suffix(".new")
        fresh.write_text(known)
        fresh.rename(path)
    return known
