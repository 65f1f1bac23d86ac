"""PgQueuer's worker: notes how old each job is. pgqueuer_work.py URL"""

import sys
from datetime import timedelta

import asyncpg
import uvloop
from noting import note_age
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver


async def main(url: str) -> None:
    connection = await asyncpg.connect(url)
    queue = PgQueuer(AsyncpgDriver(connection))

    @queue.entrypoint("age")
    async def age(job) -> None:
        note_age(float(job.payload))

    await queue.run(batch_size=10, dequeue_timeout=timedelta(seconds=30))


uvloop.run(main(sys.argv[1]))
