"""How much each connection may have under way, so that none of them crowds out the others."""

from __future__ import annotations

import asyncio

from redrive.errors import TryLater
from redrive.keys import Role

MOST = 2_000  # requests, waiting ones included
MOST_BYTES = 16 * 1024 * 1024
AT_ONCE = 8  # reads worked off; commands are all begun at once, for they share commits


class Lane:
    """The requests of one connection."""

    def __init__(self, key: tuple[Role, bytes]) -> None:
        self.key = key
        self.turn = asyncio.Semaphore(AT_ONCE)  # for reads
        self.requests = 0
        self.bytes = 0


class Lanes:
    """Those of the connections that have something under way."""

    def __init__(self) -> None:
        self._lanes: dict[tuple[Role, bytes], Lane] = {}

    def __len__(self) -> int:
        return len(self._lanes)

    def enter(self, role: Role, route: bytes, size: int) -> Lane:
        key = (role, route)
        lane = self._lanes.get(key) or Lane(key)
        if lane.requests >= MOST or lane.bytes + size > MOST_BYTES:
            raise TryLater(
                f"{lane.requests:,} requests of this connection are under way, that is too many",
                hint="wait for some of the answers first",
                retry_after=0.1,
            )
        lane.requests += 1
        lane.bytes += size
        self._lanes[key] = lane
        return lane

    def leave(self, lane: Lane, size: int) -> None:
        lane.requests -= 1
        lane.bytes -= size
        if not lane.requests:
            del self._lanes[lane.key]
