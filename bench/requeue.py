"""Redrive of a hundred thousand dead jobs, while other work goes on.

The dead jobs lie in the store when the daemon starts; `requeue --where` gives all of them
another life, and this time they succeed. Meanwhile, and for as long before, a hundred jobs a
second arrive in a queue of higher priority: their time from enqueue to start is told for both.
A real daemon with two worker processes on SQLite, `durability = "full"`, every event logged.

    PYTHONPATH=tests python bench/requeue.py [--jobs 100000] [--rounds 3]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import fill
import ours
from ages import HANDLERS, ages, sending
from report import Report, at_most, options

from redrive.blocking import Client
from redrive.protocol.queries import ListRedrives
from redrive.protocol.rows import RedriveRow
from support.daemon import Daemon, eventually

WARM = 2.0  # seconds until the other work is under way
BEFORE = 5.0  # seconds of the other work alone
CONFIG = """
[queues.urgent]
priority = 100
[tasks.mended]
python = "handlers:noop"
[tasks.age]
python = "handlers:age"
queue = "urgent"
"""


class Took(NamedTuple):
    """Seconds from the request; milliseconds from enqueue to start of the other work."""

    requeued: float
    done: float
    age_before: float
    age_meanwhile: float


def redrive_all(daemon: Daemon, client: Client, count: int) -> Took:
    path = daemon.folder / "ages"
    with sending(daemon.config):
        time.sleep(WARM)
        path.unlink()
        time.sleep(BEFORE)
        before = ages(path)
        path.unlink()
        began = time.perf_counter()
        client.act("requeue", where="task:mended state:dead")
        until(client, lambda row: row.requeued == count)
        requeued = time.perf_counter() - began
        until(client, lambda row: row.succeeded == count)
        done = time.perf_counter() - began
    return Took(requeued, done, p99(before), p99(ages(path)))


def until(client: Client, reached: Callable[[RedriveRow], bool]) -> None:
    def look() -> bool:
        return reached(client.ask(ListRedrives()).redrives[0])

    eventually(look, "the redrive is as far as that", within=300)


def p99(sorted_ages: list[float]) -> float:
    return sorted_ages[int(0.99 * len(sorted_ages))]


def one_round(folder: Path, count: int) -> Took:
    daemon = ours.a_daemon(folder, HANDLERS, CONFIG)
    url = f"sqlite:///{ours.store_of(daemon)}"
    asyncio.run(fill.fail_once(url, "mended", count, retry_at=None))
    with ours.running(daemon), daemon.client() as client:
        return redrive_all(daemon, client, count)


def main() -> None:
    parser = options(__doc__, rounds=3)
    parser.add_argument("--jobs", type=int, default=100_000)
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.jobs, chosen.rounds = 5_000, 1
    measure(chosen)


def measure(chosen: argparse.Namespace) -> None:
    report = Report(
        "requeue",
        f"Redrive of {chosen.jobs:,} dead jobs",
        "While a hundred jobs a second go on in a more urgent queue; SQLite,"
        f' `durability = "full"`, every event logged; medians of {chosen.rounds} rounds.',
    )
    rounds: list[Took] = []
    for _ in range(chosen.rounds):
        with tempfile.TemporaryDirectory(prefix="redrive-") as folder:
            rounds.append(one_round(Path(folder), chosen.jobs))
    took = Took(*(statistics.median(numbers) for numbers in zip(*rounds, strict=True)))
    report.add("until all are requeued", took.requeued, "s", goal=at_most(10))
    report.add("until all are done", took.done, "s")
    report.add("enqueue → start of the other work, p99, before", took.age_before, "ms")
    report.add("the same meanwhile", took.age_meanwhile, "ms")
    report.write(chosen)


if __name__ == "__main__":
    main()
