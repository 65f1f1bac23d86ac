"""What other nodes have done to the store, as far as this one keeps a picture of it.

Nodes do not speak to each other. Each of them looks once a second: at what is paused, at
breakers and pipelines, at what is ready, falls due or lies in the outbox, and at its own
leases. An end that was asked for at another node is begun here, and an attempt whose lease was
given away is ended: somebody else runs that job now. On SQLite nobody else writes, and nobody
looks.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from redrive.errors import RedriveError
from redrived.engine.attempt import Attempt, Ending
from redrived.store import due, leases

if TYPE_CHECKING:
    from redrived.engine.engine import Engine

EVERY = 1.0  # seconds

_ASKED_FOR = frozenset({Ending.CANCEL, Ending.KILL, Ending.RESTART})

log = logging.getLogger(__name__)


class Peers:
    """Used by the main loop only."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._taken: set[Attempt] = set()  # their leases were given away

    async def start(self) -> None:
        if not self._engine.store.database.is_sqlite:
            self._engine.timers.every("peers", EVERY, self.look_once)

    async def stop(self) -> None:
        self._engine.timers.cancel("peers")

    async def look_once(self) -> None:
        try:
            await self._look()
        except RedriveError as problem:  # a store in trouble: it is looked at again
            log.debug("nobody was looked at: %s", problem)

    async def _look(self) -> None:
        engine = self._engine
        await self.look_at_leases()
        await engine.pauses.read()
        await engine.breakers.read()
        await engine.pipelines.look()
        to_do = await engine.store.read(due.to_do)
        if to_do.is_ready:
            engine.dispatcher.wake()
        if to_do.due_at is not None:
            engine.promoter.due_sooner(to_do.due_at)
        if to_do.gate_at is not None:
            engine.gates.due_sooner(to_do.gate_at)
        engine.outbox.look(to_do.is_ordered, to_do.refused_at)

    async def look_at_leases(self) -> None:
        """Do what was asked elsewhere of our attempts, and end those that are no longer ours."""
        engine = self._engine
        # Before the question: what is leased after it is not in the answer.
        attempts = list(engine.attempts)
        ours = await engine.store.read(leases.of_node, engine.node)
        taken = {a for a in attempts if not a.is_over and (a.job.id, a.job.lease) not in ours}
        news, self._taken = taken - self._taken, taken  # one that SIGKILL does not end stays
        for attempt in news:
            engine.ender.end(attempt, Ending.LOST, "the node was taken for lost")
        if news:
            log.warning("this node was taken for lost; %d attempts are ended", len(news))
            engine.dispatcher.take_back()
        engine.ender.keep_wishes(ours)
        for (job, lease), (ending, by) in ours.items():
            if ending in _ASKED_FOR:
                engine.end(job, lease, Ending(ending), by or "")
