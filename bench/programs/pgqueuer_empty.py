"""Work until nothing is left, once a line has come in: pgqueuer_empty.py URL BATCH"""

import sys

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.types import QueueExecutionMode


async def main(url: str, batch: int) -> None:
    queue = PgQueuer(AsyncpgDriver(await asyncpg.connect(url)))

    @queue.entrypoint("noop")
    async def noop(job) -> None:
        pass

    print("ready", flush=True)
    sys.stdin.readline()
    await queue.run(batch_size=batch, mode=QueueExecutionMode.drain)
    print("done", flush=True)


uvloop.run(main(sys.argv[1], int(sys.argv[2])))
