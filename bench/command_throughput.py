"""Commands through the whole engine, against the barest way to run them.

Rounds of `true`, two at a time: a posix_spawn + pidfd loop with its output in one file, and
jobs already enqueued that a daemon's engine leases, runs, settles and logs (SQLite,
durability full, every event, both streams kept), alternating in one process, medians. Run it
with `python bench/command_throughput.py [ROUNDS] [COMMANDS]`; the ratio is what counts.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import uvloop
from commands import AT_ONCE, bare, commands_per_second

from redrive.clock import SystemClock
from redrive.config import load
from redrive.protocol.commands import Enqueue, JobOrder
from redrived.engine import intake
from redrived.engine.engine import Engine
from redrived.engine.timers import Timers
from redrived.processes.parent import become_parent
from redrived.store.enqueue import enqueue
from redrived.store.store import Store
from redrived.store.unit import Landed

CONFIG = f"""
[daemon]
name = "bench"
concurrency = {AT_ONCE}
[tasks.true]
command = ["true"]
"""


class Drain:
    """Counts ends as they land."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._left = 0
        self._empty = asyncio.Event()
        engine.store.landed.append(self._count)

    async def commands_per_second(self, count: int) -> float:
        engine = self._engine
        engine.dispatcher.is_open = False
        self._left = count
        self._empty.clear()
        request = Enqueue(task="true", orders=[JobOrder()], count=count)
        order = intake.order(engine.definitions, request, "bench", engine.clock.now())
        await engine.store.submit(enqueue, order)
        began = time.perf_counter()
        engine.dispatcher.is_open = True
        engine.dispatcher.wake()
        await self._empty.wait()
        return count / (time.perf_counter() - began)

    def _count(self, landed: Landed) -> None:
        self._left -= sum(event[1] == "action_completed" for event in landed.events)
        if self._left <= 0:
            self._empty.set()


@asynccontextmanager
async def engine_in(folder: Path) -> AsyncIterator[Engine]:
    path = folder / "config.toml"
    path.write_text(CONFIG)
    clock = SystemClock()
    store = Store(f"sqlite:///{folder}/state/redrive.db", clock, "bench")
    await store.open()
    timers = Timers(clock)
    timers.start()
    engine = Engine(
        load(path).config,
        store,
        clock,
        timers,
        node="bench",
        epoch="bench",
        state_dir=folder / "state",
        runtime_dir=folder / "run",
        drain=lambda: None,
    )
    for service in engine.services:
        await service.start()
    try:
        yield engine
    finally:
        for service in reversed(engine.services):
            await service.stop()
        await timers.stop()
        await store.close()


async def main(rounds: int, count: int) -> None:
    become_parent()
    rates: dict[str, list[float]] = {"bare": [], "engine": []}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # as the daemon does
        spawn = bare(Path(folder))
        for _ in range(rounds):
            rates["bare"].append(await commands_per_second(spawn, count))
            # Opened anew: an engine would take the bare loop's children for runaways.
            async with engine_in(Path(folder)) as engine:
                drain = Drain(engine)
                await drain.commands_per_second(50)  # so that it knows how long they take
                rates["engine"].append(await drain.commands_per_second(count))
    medians = {name: statistics.median(measured) for name, measured in rates.items()}
    for name, median in medians.items():
        print(f"{name:<12}{median:>8.0f} commands/s")
    print(f"ratio {medians['engine'] / medians['bare']:.2f}, goal 0.85")


if __name__ == "__main__":
    arguments = [int(argument) for argument in sys.argv[1:]]
    uvloop.run(main(*(arguments + [7, 600][len(arguments) :])))
