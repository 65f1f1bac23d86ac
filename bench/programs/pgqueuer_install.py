"""PgQueuer's tables in an empty database: pgqueuer_install.py URL"""

import asyncio
import sys

import asyncpg
from pgqueuer import Queries
from pgqueuer.db import AsyncpgDriver


async def main(url: str) -> None:
    connection = await asyncpg.connect(url)
    await Queries(AsyncpgDriver(connection)).install()


asyncio.run(main(sys.argv[1]))
