"""Who has exited: one epoll for the pidfds of all commands, itself one descriptor of the loop.

Registering each pidfd with the event loop works too, but costs a `true` twenty microseconds
that this does not.
"""

from __future__ import annotations

import asyncio
import os
import select
from collections.abc import Callable


class Exits:
    """Used by the main loop only."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._is_looked_at = False
        self._waiting: dict[int, Callable[[], None]] = {}

    def watch(self, pidfd: int, exited: Callable[[], None]) -> None:
        """Call `exited` once, when the process can be reaped; the descriptor is ours from now."""
        if not self._is_looked_at:
            asyncio.get_running_loop().add_reader(self._epoll, self._look)
            self._is_looked_at = True
        self._epoll.register(pidfd, select.EPOLLIN)
        self._waiting[pidfd] = exited

    def _look(self) -> None:
        for pidfd, _ in self._epoll.poll(0):
            self._epoll.unregister(pidfd)
            os.close(pidfd)
            self._waiting.pop(pidfd)()
