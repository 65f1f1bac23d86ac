"""So many no-op jobs in an empty database: pgqueuer_fill.py URL COUNT

Prints how many of them a second.
"""

import asyncio
import sys
import time

import asyncpg
from pgqueuer import Queries
from pgqueuer.db import AsyncpgDriver


async def main(url: str, count: int) -> None:
    connection = await asyncpg.connect(url)
    queries = Queries(AsyncpgDriver(connection))
    await queries.install()
    began = time.perf_counter()
    await queries.enqueue(["noop"] * count, [None] * count, [0] * count)
    print(count / (time.perf_counter() - began))
    await connection.execute("VACUUM ANALYZE")
    await connection.close()


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
