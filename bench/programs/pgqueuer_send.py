"""Send so many jobs at a steady pace: pgqueuer_send.py URL COUNT RATE."""

import asyncio
import sys
import time

import asyncpg
from pgqueuer import Queries
from pgqueuer.db import AsyncpgDriver
from steadily import steadily


async def main(url: str, count: int, rate: float) -> None:
    connection = await asyncpg.connect(url)
    queries = Queries(AsyncpgDriver(connection))
    await steadily(count, rate, lambda: queries.enqueue("age", str(time.time()).encode(), 0))


asyncio.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
