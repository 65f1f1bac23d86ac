"""Shell commands through the whole engine, against the barest way to run them.

Rounds of `true`, two at a time: a posix_spawn + pidfd loop with its output in one file, what
supervises commands in the daemon, and jobs already enqueued that a daemon's engine leases, runs,
settles and logs (SQLite, `durability = "full"`, every event, both streams kept), in turns in one
process. Then task-spooler, where it can be had, from the first `tsp true` to the end of the last:
each of them leaves a process that waits for its turn, so what its queue holds is half run already.
Beside that stands redrive with its enqueueing, too.

    PYTHONPATH=tests python bench/commands.py [--commands 2000] [--rounds 7]
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import NamedTuple

import peers
import uvloop
from report import Report, at_least, options
from spawning import AT_ONCE, bare, commands_per_second, supervised

from redrive.clock import SystemClock
from redrive.protocol.commands import Enqueue, JobOrder
from redrived.__main__ import GARBAGE
from redrived.engine import intake
from redrived.engine.engine import Engine
from redrived.processes.parent import become_parent
from redrived.store.enqueue import enqueue
from redrived.store.unit import Landed
from support.engine import at_work, still

WARM = 50  # by then it knows how long they take
SPOOLED = 500  # more of them waiting than task-spooler likes
CONFIG = f"""
[daemon]
name = "bench"
concurrency = {AT_ONCE}
[tasks.true]
command = ["true"]
"""


class Measured(NamedTuple):
    rate: float  # commands per second
    cpu: float  # µs of ours for each, the commands' own not counted
    enqueueing: float = 0.0  # seconds for all of them, before

    def whole(self, count: int) -> float:
        """Commands per second, their enqueueing included."""
        return count / (count / self.rate + self.enqueueing)


async def measured(drain: Coroutine[None, None, float], count: int) -> Measured:
    spent = time.process_time()
    rate = await drain
    return Measured(rate, 1e6 * (time.process_time() - spent) / count)


class Drain:
    """Counts ends as they land."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._left = 0
        self._empty = asyncio.Event()
        engine.store.landed.append(self._count)

    async def enqueue(self, count: int) -> float:
        """Let so many wait; how many seconds that took."""
        engine = self._engine
        engine.dispatcher.close()
        began = time.perf_counter()
        request = Enqueue(task="true", orders=[JobOrder()], count=count)
        order = intake.order(engine.definitions, request, "bench", engine.clock.now())
        await engine.store.submit(enqueue, order)
        return time.perf_counter() - began

    async def commands_per_second(self, count: int) -> float:
        """Run all that waits."""
        engine = self._engine
        self._left = count
        self._empty.clear()
        began = time.perf_counter()
        engine.dispatcher.is_open = True
        engine.dispatcher.wake()
        await self._empty.wait()
        return count / (time.perf_counter() - began)

    def _count(self, landed: Landed) -> None:
        self._left -= sum(event[1] == "action_completed" for event in landed.events)
        if self._left <= 0:
            self._empty.set()


async def through_the_engine(folder: Path, count: int) -> Measured:
    # Opened anew: an engine would take other children for runaways.
    async with still(folder, CONFIG, SystemClock()) as engine, at_work(engine):
        drain = Drain(engine)
        await drain.enqueue(WARM)
        await drain.commands_per_second(WARM)
        enqueueing = await drain.enqueue(count)
        found = await measured(drain.commands_per_second(count), count)
        return found._replace(enqueueing=enqueueing)


def task_spooler(folder: Path, count: int) -> float:
    """Commands per second, from the first that it is told to the end of the last."""
    tsp = peers.unpacked("task-spooler", "tsp")
    (folder / "spool").mkdir()
    env = {**os.environ, "TS_SOCKET": str(folder / "spool" / "socket"), "TMPDIR": str(folder)}

    def ask(*words: str) -> str:
        return subprocess.check_output([tsp, *words], env=env, cwd=folder, text=True).strip()

    try:
        ask("-S", str(AT_ONCE))
        ask("-w", ask("true"))
        began = time.perf_counter()
        last = [ask("true") for _ in range(count)][-1]
        ask("-w", last)
        return count / (time.perf_counter() - began)
    finally:
        ask("-K")


async def main(chosen: argparse.Namespace) -> None:
    become_parent()
    gc.collect()  # as the daemon does, too
    gc.freeze()
    gc.set_threshold(GARBAGE)
    report = Report(
        "commands",
        "Shell commands",
        f"`true`, {AT_ONCE} at a time, its output kept. Bare: a posix_spawn and pidfd loop in"
        " Python, without a store. Supervised: what runs commands in the daemon, alone. redrive:"
        ' jobs on SQLite, `durability = "full"`, every event logged. task-spooler: from the first'
        " `tsp true` to the end of the last, for each waits as a process already; it keeps nothing"
        f" on disk. Medians of {chosen.rounds} rounds.",
    )
    found: dict[str, list[Measured]] = {"bare": [], "supervised": [], "redrive": []}
    with tempfile.TemporaryDirectory(prefix="redrive-") as name:
        folder = Path(name)
        os.chdir(folder)  # as the daemon does
        ways = {"bare": bare(folder), "supervised": supervised(folder)}
        for _ in range(chosen.rounds):
            for way, start in ways.items():
                run = commands_per_second(start, chosen.commands)
                found[way].append(await measured(run, chosen.commands))
            found["redrive"].append(await through_the_engine(folder, chosen.commands))
        os.chdir("/")
    rates = {way: [each.rate for each in all_of_it] for way, all_of_it in found.items()}
    try:
        rates["task-spooler"] = [spooled(chosen.commands) for _ in range(chosen.rounds)]
    except peers.Absent as absent:
        report.note(str(absent))
    medians = {name: statistics.median(measured) for name, measured in rates.items()}
    for name, median in medians.items():
        report.add(name, median, "commands/s")
    report.add("redrive, of bare", medians["redrive"] / medians["bare"], goal=at_least(0.85))
    for way, all_of_it in found.items():
        report.add(f"{way}, processor time besides the command's", cpu_of(all_of_it), "µs")
    whole = statistics.median(each.whole(chosen.commands) for each in found["redrive"])
    report.add("redrive, with their enqueueing", whole, "commands/s")
    if theirs := medians.get("task-spooler"):
        report.add("that, beside task-spooler", whole / theirs, "×", floor=at_least(2.5))
    report.write(chosen)


def cpu_of(rounds: list[Measured]) -> float:
    return statistics.median(each.cpu for each in rounds)


def spooled(count: int) -> float:
    with tempfile.TemporaryDirectory(prefix="redrive-") as folder:
        return task_spooler(Path(folder), min(count, SPOOLED))


if __name__ == "__main__":
    parser = options(__doc__, rounds=7)
    parser.add_argument("--commands", type=int, default=2_000)
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.rounds, chosen.commands = 1, 100
    uvloop.run(main(chosen))
