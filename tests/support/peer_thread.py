"""The peer in a thread of its own, for tests whose subject blocks: the command line."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.peer import Peer, opened


@contextmanager
def serving(folder: Path) -> Iterator[Peer]:
    ready = threading.Event()
    stop: asyncio.Event
    loop: asyncio.AbstractEventLoop
    peer: Peer

    async def serve() -> None:
        nonlocal stop, loop, peer
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        async with opened(folder) as peer:
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=[serve()])
    thread.start()
    ready.wait()
    try:
        yield peer
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
