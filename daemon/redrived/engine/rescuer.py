"""After a daemon died: end what it left running, then settle what it left leased.

Only when no process of an old attempt is left does dispatch begin, so a job never runs twice
at once on this machine. What never began goes back free of charge; what was being cancelled
is cancelled; the rest is lost, and the policy says what follows.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from redrived.engine.attempt import Ending
from redrived.engine.settler import Settler
from redrived.processes.output import Outputs
from redrived.processes.stuck import stuck_words
from redrived.processes.tree import Trees
from redrived.store.rescue import LeftBehind, left_behind
from redrived.store.store import Store

log = logging.getLogger(__name__)


class Rescuer:
    def __init__(
        self, store: Store, settler: Settler, trees: Trees, outputs: Outputs, node: str
    ) -> None:
        self._store = store
        self._settler = settler
        self._trees = trees
        self._outputs = outputs
        self._node = node

    async def start(self) -> None:
        ended = await self._trees.end_leftovers(self._outputs.folder)
        if ended.killed:
            log.warning("ended %d processes of an earlier daemon", len(ended.killed))
        if ended.unkillable:
            log.error("an earlier daemon has left some: %s", stuck_words(ended.unkillable))
        left = await self._store.read(left_behind, self._node)
        self.settle(left)
        if left:
            log.warning("an earlier daemon left %d jobs leased; they are settled", len(left))

    async def stop(self) -> None:
        """The last look: whoever hid from the end of his attempt goes with the daemon."""
        self._trees.sweep()

    def settle(self, left: Sequence[LeftBehind]) -> None:
        """Nobody runs these any more. One row that makes no sense holds up no other."""
        self._settler.gave_back([each.job for each in left if each.started_at is None])
        for each in left:
            if each.started_at is None:
                continue
            try:
                self._settle(each)
            except Exception as problem:  # noqa: BLE001 - told in the log and to the job
                self._settler.put_aside(each.job, problem)

    def _settle(self, left: LeftBehind) -> None:
        try:
            ending = Ending(left.ending) if left.ending else None
        except ValueError:
            ending = None
        self._settler.left_behind(left.job, ending, left.by)
