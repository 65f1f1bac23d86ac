"""From enqueue to start at a hundred jobs a second, and what a daemon costs that has no work.

redrive with two worker processes, SQLite and `durability = "full"`: the bus, two commits and
the way to the worker are all in it. Beside it, in turns: PgQueuer on an embedded PostgreSQL
with synchronous commit, taskiq on a Redis that writes nothing for a request, and on one that
syncs each write. In each, the handler appends to a file how long ago its job was sent.

    PYTHONPATH=tests python bench/latency.py [--seconds 10] [--rounds 3]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import ours
import peers
import psutil
from ages import HANDLERS, RATE, ages, at, send
from cpu import cpu_seconds
from postgresql import a_server
from report import Report, at_most, options

from support.daemon import eventually

IDLE = 20.0  # seconds
WARM = 50  # jobs sent before those that count
CONFIG = """
[tasks.age]
python = "handlers:age"
"""
Send = Callable[[int], None]


def measured(folder: Path, send: Send, count: int) -> list[float]:
    """Milliseconds from enqueue to start, sorted."""
    path = folder / "ages"
    send(WARM)
    eventually(lambda: len(ages(path)) >= WARM, "the workers are warm")
    path.unlink()
    send(count)
    eventually(lambda: len(ages(path)) >= count, "all have started")
    return ages(path)


def redrive(folder: Path, count: int) -> list[float]:
    with ours.running(ours.a_daemon(folder, HANDLERS, CONFIG)) as daemon:
        return measured(folder, lambda n: asyncio.run(send(daemon.config, n)), count)


def taskiq(folder: Path, count: int, *redis: str) -> list[float]:
    peers.install("taskiq", "taskiq", "taskiq-redis", "uvloop")
    with ExitStack() as stack:
        url = stack.enter_context(peers.redis(folder, *redis))
        worker = [str(peers.BIN / "taskiq"), "worker", "taskiq_tasks:broker", "--workers", "2"]
        stack.enter_context(peers.running(worker, folder, REDIS_URL=url))

        def send(n: int) -> None:
            peers.output(peers.program("taskiq_send.py", n, RATE), folder, REDIS_URL=url)

        return measured(folder, send, count)


def pgqueuer(folder: Path, count: int) -> list[float]:
    peers.install("PgQueuer", "pgqueuer", "asyncpg", "uvloop")
    with ExitStack() as stack:
        url = stack.enter_context(a_server(folder))
        peers.output(peers.program("pgqueuer_install.py", url), folder)
        worker = peers.program("pgqueuer_work.py", url)
        stack.enter_context(peers.running(worker, folder, copies=2))

        def send(n: int) -> None:
            peers.output(peers.program("pgqueuer_send.py", url, n, RATE), folder)

        return measured(folder, send, count)


def idle(report: Report, seconds: float) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="redrive-") as folder,
        ours.running(ours.a_daemon(Path(folder), HANDLERS, CONFIG)) as daemon,
    ):
        assert daemon.process is not None
        process = psutil.Process(daemon.process.pid)
        time.sleep(3)  # what the start leaves to do
        before = cpu_seconds(process.pid)
        time.sleep(seconds)
        share = 100 * (cpu_seconds(process.pid) - before) / seconds
        report.add("idle daemon, CPU", share, "% of a core", goal=at_most(0.5))
        memory = process.memory_info().rss / 1024**2
        report.add("idle daemon, memory", memory, "MB", goal=at_most(70))
        workers = sum(child.memory_info().rss for child in process.children(recursive=True))
        report.add("its two workers", workers / 1024**2, "MB")


SYSTEMS: dict[str, Callable[[Path, int], list[float]]] = {
    "redrive": redrive,
    "taskiq": taskiq,
    "taskiq, syncing": lambda folder, count: taskiq(folder, count, *peers.SYNCS),
    "PgQueuer": pgqueuer,
}


def compare(report: Report, chosen: argparse.Namespace) -> None:
    """Each system in turn; one that cannot be had is left out."""
    found: dict[str, list[list[float]]] = {name: [] for name in SYSTEMS}
    for _ in range(chosen.rounds):
        for name in list(found):
            with tempfile.TemporaryDirectory(prefix="redrive-") as folder:
                try:
                    found[name].append(SYSTEMS[name](Path(folder), round(chosen.seconds * RATE)))
                except peers.Absent as absent:
                    report.note(str(absent))
                    del found[name]
    for title, share, most in (("p50", 0.5, 1.2), ("p99", 0.99, 1.5)):
        ms = {name: statistics.median(at(share, r) for r in runs) for name, runs in found.items()}
        for name, median in ms.items():
            report.add(f"enqueue → start, {title}, {name}", median, "ms")
        ours = ms.pop("redrive")
        for name, theirs in ms.items():
            goal = at_most(most) if name == "taskiq" else None
            floor = at_most(1) if name == "PgQueuer" else None
            report.add(f"{title} beside {name}", ours / theirs, "×", goal=goal, floor=floor)


def main() -> None:
    parser = options(__doc__, rounds=3)
    parser.add_argument("--seconds", type=float, default=10)
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.seconds, chosen.rounds = 2, 1
    report = Report(
        "latency",
        "From enqueue to start, and a daemon without work",
        f'At {RATE} jobs a second. redrive on SQLite with `durability = "full"`, both on disk before'
        " the enqueue is answered and the job starts; PgQueuer with synchronous commit;"
        " taskiq on a Redis as it comes, which promises nothing after a crash, and on one that"
        " syncs each write (`appendfsync always`). Two worker processes"
        f" each; medians of {chosen.rounds} rounds.",
    )
    compare(report, chosen)
    idle(report, 3 if chosen.quick else IDLE)
    report.write(chosen)


if __name__ == "__main__":
    main()
