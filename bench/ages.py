"""How old a job is when it starts: sent at a steady pace, noted by its handler in a file.

The file is the same for every system that is measured: its handler appends one line.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from programs.steadily import steadily

from redrive.client import AsyncClient

RATE = 100  # jobs a second
NOTING = Path(__file__).parent / "programs" / "noting.py"
FOR_EVER = 1_000_000_000
HANDLERS = f"""
{NOTING.read_text()}

def noop():
    pass

def age(sent):
    note_age(sent)
"""


async def send(config: Path, count: int, rate: float = RATE) -> None:
    async with AsyncClient(config) as client:
        await steadily(count, rate, lambda: client.enqueue("age", {"sent": time.time()}))


def _send_for_ever(config: Path) -> None:
    asyncio.run(send(config, FOR_EVER))


@contextmanager
def sending(config: Path) -> Iterator[None]:
    """While this goes on, jobs are sent by a process of their own."""
    process = multiprocessing.get_context("spawn").Process(target=_send_for_ever, args=[config])
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


def ages(path: Path) -> list[float]:
    """Milliseconds, sorted."""
    if not path.exists():
        return []
    return sorted(1000 * float(line) for line in path.read_text().splitlines())


def at(share: float, numbers: list[float]) -> float:
    """The percentile of sorted numbers."""
    return numbers[int(share * len(numbers))]
