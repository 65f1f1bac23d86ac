"""Calls at their instants, however long the answers take."""

import asyncio
import time
from collections.abc import Awaitable, Callable


async def steadily(count: int, rate: float, call: Callable[[], Awaitable[object]]) -> None:
    under_way: set[asyncio.Future[object]] = set()
    began = time.perf_counter()
    for n in range(count):
        await asyncio.sleep(max(0.0, began + n / rate - time.perf_counter()))
        task = asyncio.ensure_future(call())
        under_way.add(task)
        task.add_done_callback(under_way.discard)
    await asyncio.gather(*under_way)
