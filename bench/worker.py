"""Jobs a second through a pool alone: no store, no limits, handlers that do nothing.

What the daemon adds to each job comes on top: this is what workers and their sockets cost.
Rounds are interleaved, medians are shown.

    python bench/worker.py [--jobs 100000] [--rounds 5]
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import statistics
import sys
import tempfile
import time
from collections import Counter
from itertools import count
from pathlib import Path

import msgspec
from report import Report, options

from redrive.config.sections import Pool as PoolSettings
from redrived.processes import wire
from redrived.processes.pool import Pool
from redrived.processes.pool_worker import Loss, Worker
from redrived.processes.tree import Trees

HANDS = (500, 50, 1)
NO_ARGS = msgspec.Raw(b"{}")


class Feeder:
    """Hands the next jobs to whichever worker has room, two hands at a time."""

    def __init__(self) -> None:
        self.workers = 0
        self.some_ready = asyncio.Event()
        self.drained = asyncio.Event()
        self.left = self.unfinished = self.hand = 0
        self._held: Counter[Worker] = Counter()
        self._ids = count(1)

    async def drain(self, workers: list[Worker], jobs: int, hand: int) -> None:
        self.left = self.unfinished = jobs
        self.hand = hand
        self.drained.clear()
        for worker in workers:
            self.feed(worker)
        await self.drained.wait()

    def feed(self, worker: Worker) -> None:
        most = self.hand * 2 if self.hand > 1 else 1
        while self.left and self._held[worker] + self.hand <= most:
            n = min(self.hand, self.left)
            self.left -= n
            self._held[worker] += n
            jobs = [wire.HandedJob("noop", next(self._ids), 1, 1, 1, 1, NO_ARGS) for _ in range(n)]
            worker.hand(jobs, 1e-6, begun=n == 1)

    def ready(self, worker: Worker) -> None:
        self.workers += 1
        self.some_ready.set()

    def reported(self, worker: Worker, reports: list[wire.Report]) -> None:
        self.unfinished -= len(reports)
        self._held[worker] -= len(reports)
        self.feed(worker)
        if not self.unfinished:
            self.drained.set()

    def lost(self, worker: Worker, loss: Loss) -> None:
        sys.exit(f"a worker died: {loss}")

    def begun(self, worker: Worker, begun: wire.Begun) -> None: ...
    def beat(self, worker: Worker, beat: wire.Beat) -> None: ...
    def marked(self, worker: Worker, mark: wire.Mark) -> None: ...
    def asked(self, worker: Worker, ask: wire.Ask) -> None: ...

    def gave_back(self, worker: Worker, jobs: list[tuple[int, int]]) -> None:
        self.left += len(jobs)
        self._held[worker] -= len(jobs)
        self.feed(worker)


async def main(folder: str, chosen: argparse.Namespace) -> None:
    rates: dict[tuple[int, int], list[float]] = {}
    costs: dict[tuple[int, int], list[float]] = {}
    feeder = Feeder()
    pool = Pool(
        "bench",
        PoolSettings(path=[folder], processes=2),
        folder=folder,
        outputs=f"{folder}/outputs",
        trees=Trees("bench"),
        listener=feeder,
    )
    pool.define({"noop": wire.TaskFacts("handlers:noop")})
    pool.start()
    await feeder.some_ready.wait()
    while feeder.workers < 2:
        await feeder.drain(pool.workers[:1], 100, 10)
    for _ in range(chosen.rounds):
        for hand in HANDS:
            for workers in (1, 2):
                amount = chosen.jobs if hand > 1 else chosen.jobs // 10
                before, spent = time.perf_counter(), _cpu()
                await feeder.drain(pool.workers[:workers], amount, hand)
                rates.setdefault((hand, workers), []).append(
                    amount / (time.perf_counter() - before)
                )
                costs.setdefault((hand, workers), []).append((_cpu() - spent) / amount)
    await pool.stop(5)
    report = Report(
        "worker",
        "Worker processes",
        "Handlers that do nothing, handed to a pool so many at a time; nothing is stored. Medians"
        f" of {chosen.rounds} rounds.",
    )
    for (hand, workers), measured in rates.items():
        name = f"{hand} at a time, {workers} worker{'s' * (workers > 1)}"
        report.add(name, statistics.median(measured), "jobs/s")
        report.add(
            "the same, CPU of the daemon", 1e6 * statistics.median(costs[hand, workers]), "µs a job"
        )
    report.write(chosen)


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    parser = options(__doc__, rounds=5)
    parser.add_argument("--jobs", type=int, default=100_000)
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.rounds, chosen.jobs = 1, 5_000
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "handlers.py").write_text("def noop():\n    pass\n")
        asyncio.run(main(folder, chosen))
