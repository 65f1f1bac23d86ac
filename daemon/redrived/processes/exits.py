"""Who has exited: one epoll for the pidfds of all commands, itself one descriptor of the loop.

Registering each pidfd with the event loop works too, but costs a `true` twenty microseconds
that this does not.
"""

from __future__ import annotations

import asyncio
import os
import select
from collections.abc import Callable
from typing import Generic, TypeVar

AT_ONCE = 8  # exits until others get their turn; the next commands start in between

Whose = TypeVar("Whose")


class Exits(Generic[Whose]):
    """Used by the main loop only."""

    def __init__(self, exited: Callable[[list[Whose]], None]) -> None:
        self._exited = exited
        self._epoll = select.epoll()
        self._is_looked_at = False
        self._waiting: dict[int, Whose] = {}

    def watch(self, pidfd: int, whose: Whose) -> None:
        """Tell of it once, when the process can be reaped; the descriptor is ours from now."""
        if not self._is_looked_at:
            asyncio.get_running_loop().add_reader(self._epoll, self._look)
            self._is_looked_at = True
        self._epoll.register(pidfd, select.EPOLLIN)
        self._waiting[pidfd] = whose

    def _look(self) -> None:
        self._exited([self._forget(pidfd) for pidfd, _ in self._epoll.poll(0, AT_ONCE)])

    def _forget(self, pidfd: int) -> Whose:
        self._epoll.unregister(pidfd)
        os.close(pidfd)
        return self._waiting.pop(pidfd)
