"""Send so many jobs at a steady pace: huey_send.py COUNT RATE."""

import asyncio
import sys
import time

from huey_tasks import age
from steadily import steadily


async def send() -> None:
    age(time.time())


asyncio.run(steadily(int(sys.argv[1]), float(sys.argv[2]), send))
