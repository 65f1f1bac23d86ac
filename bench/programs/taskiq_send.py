"""Send so many jobs at a steady pace: taskiq_send.py COUNT RATE."""

import asyncio
import sys
import time

from steadily import steadily
from taskiq_tasks import age, broker


async def main(count: int, rate: float) -> None:
    await broker.startup()
    await steadily(count, rate, lambda: age.kiq(time.time()))
    await broker.shutdown()


asyncio.run(main(int(sys.argv[1]), float(sys.argv[2])))
