"""The bus in a process of its own, so that its memory can be told from that of its attackers."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from pathlib import Path

from redrived import memory
from support.bus import serving


def stand_still(*_: object) -> None:
    time.sleep(0.5)


async def main(folder: Path) -> None:
    signal.signal(signal.SIGUSR1, stand_still)  # the loop, not libzmq's thread
    async with serving(folder) as served:
        print("up", flush=True)
        gone = asyncio.Event()
        asyncio.get_running_loop().add_reader(0, gone.set)
        while not gone.is_set():
            served.tell()
            served.head()
            await asyncio.sleep(0.01)


if __name__ == "__main__":
    memory.set_up()
    asyncio.run(main(Path(sys.argv[1])))
