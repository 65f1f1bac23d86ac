"""The machine has no room for one more command: how many may be tried meanwhile, and when.

Each vain try costs as much as a command that runs. So one may start where another has ended,
and one more is tried after a rest, which doubles up to half a minute. When that one can start,
two more may follow, then four, until there is room for all or one is refused again. When nobody
wants what is allowed, nothing is short.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from redrived.processes.spawn import NoRoom

log = logging.getLogger(__name__)

REST = 1.0  # seconds
LONGEST_REST = 30.0


class Shortage:
    """Used by the main loop only."""

    def __init__(self, when_more: Callable[[], None]) -> None:
        self.trouble: NoRoom | None = None  # what was said last, while there is one
        self._when_more = when_more  # called when more may be tried
        self._allowed = 0
        self._step = 0  # how many were allowed at once; 0: one was refused since the last rest
        self._rest = 0.0
        self._resting: asyncio.TimerHandle | None = None

    def most(self, free: int) -> int:
        """For how many of the free slots something may be leased."""
        if self.trouble is not None and self._step > 1 and 0 < free <= self._allowed:
            self._end()
        return free if self.trouble is None else min(free, self._allowed)

    def may_start(self) -> bool:
        """Whether one more may be tried now; counted once it has `started`, or was `refused`."""
        return self.trouble is None or self._allowed > 0

    def refused(self, trouble: NoRoom) -> None:
        if self.trouble is None:
            log.warning("commands wait: %s (%s)", trouble.message, trouble.hint)
        self.trouble = trouble
        self._allowed = self._step = 0
        self._rest = min(max(2 * self._rest, REST), LONGEST_REST)
        self._wait()

    def started(self) -> None:
        if self.trouble is None:
            return
        self._allowed -= 1
        if self._step and self._allowed == 0:
            self._step *= 2
            self._allowed = self._step
            self._when_more()

    def gone(self) -> None:
        """One has ended: there is room for another in its place."""
        if self.trouble is not None:
            self._allowed += 1

    def _wait(self) -> None:
        if self._resting is not None:
            self._resting.cancel()
        self._resting = asyncio.get_running_loop().call_later(self._rest, self._rested)

    def _rested(self) -> None:
        if self._step and self._allowed:
            self._end()
        else:
            self._step = 1
            self._allowed = max(self._allowed, 1)
            self._wait()
        self._when_more()

    def _end(self) -> None:
        log.warning("commands can be started again")
        if self._resting is not None:
            self._resting.cancel()
        self.trouble = self._resting = None
        self._allowed = self._step = 0
        self._rest = 0.0
