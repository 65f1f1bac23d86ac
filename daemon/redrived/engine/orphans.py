"""Reaps, each second, what ran away from its attempt and has outlived it."""

from __future__ import annotations

import logging

from redrived.engine.timers import Timers
from redrived.processes.tree import Trees

EVERY = 1.0  # seconds

log = logging.getLogger(__name__)


class Orphans:
    def __init__(self, trees: Trees, timers: Timers) -> None:
        self._trees = trees
        self._timers = timers

    async def start(self) -> None:
        self._timers.every("orphans", EVERY, self.sweep_once)

    async def stop(self) -> None:
        self._timers.cancel("orphans")
        self.sweep_once()  # now that the trees are gone, nobody's may be left

    def sweep_once(self) -> None:
        killed = self._trees.sweep()
        if killed:
            log.warning("killed processes that had outlived their attempts: %s", killed)
