"""After a daemon died: end what it left running, then settle what it left leased.

Before that dispatch does not begin, so a job never runs twice at once on this machine; one whose
processes SIGKILL does not end is settled when they are gone. What never began goes back free of
charge; what was being cancelled is cancelled; the rest is lost, and the policy says what follows.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from redrived.engine.attempt import ending_of
from redrived.engine.leftovers import Leftovers
from redrived.engine.settler import Settler
from redrived.engine.timers import Timers
from redrived.processes.output import Outputs
from redrived.processes.tree import Trees
from redrived.store.rescue import LeftBehind, left_behind
from redrived.store.store import Store

EVERY = 1.0  # seconds

log = logging.getLogger(__name__)


class Rescuer:
    def __init__(
        self,
        store: Store,
        settler: Settler,
        leftovers: Leftovers,
        trees: Trees,
        outputs: Outputs,
        timers: Timers,
        node: str,
    ) -> None:
        self._store = store
        self._settler = settler
        self._leftovers = leftovers
        self._trees = trees
        self._outputs = outputs
        self._timers = timers
        self._node = node

    async def start(self) -> None:
        ended = await self._trees.end_leftovers(self._outputs.folder)
        if ended.killed:
            log.warning("ended %d processes of an earlier daemon", len(ended.killed))
        left = await self._store.read(left_behind, self._node)
        kept = await self._leftovers.keep(ended.unkillable, left, self._trees.marks_left())
        over = [each for each in left if each.job.id not in kept]
        self.settle(over)
        if over:
            log.warning("an earlier daemon left %d jobs leased; they are settled", len(over))
        self._timers.every("leftovers", EVERY, self.look_once)

    async def stop(self) -> None:
        """The last look: whoever hid from the end of his attempt goes with the daemon."""
        self._timers.cancel("leftovers")
        self._trees.sweep()

    def look_once(self) -> None:
        if gone := self._leftovers.gone():
            self.settle(gone)

    def settle(self, left: Sequence[LeftBehind]) -> None:
        """Nobody runs these any more. One row that makes no sense holds up no other."""
        self._settler.gave_back([each.job for each in left if each.started_at is None])
        for each in left:
            if each.started_at is None:
                continue
            try:
                self._settler.left_behind(each.job, ending_of(each.ending), each.by)
            except Exception as problem:  # noqa: BLE001 - told in the log and to the job
                self._settler.put_aside(each.job, problem)
