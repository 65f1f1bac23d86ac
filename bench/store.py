"""The speed of the store: enqueue, lease, finish, beat and their events, at 10 k and 1 M rows.

One run measures redrive's own statements beside the same work done row by row with the bare
driver, on the same disk, in turn; read the ratios. `python bench/store.py --help` says more.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from redrive.clock import SystemClock
from redrived.store.beats import Beat, beat
from redrived.store.enqueue import NewJob, Order, enqueue
from redrived.store.leases import lease
from redrived.store.picking import Berth, InHand, Room, TaskRules
from redrived.store.settle import Completed, complete
from redrived.store.store import Store

RULES = {"noop": TaskRules(pool="default", hand=1_000_000)}


async def fill(store: Store, n: int, batch: int = 5_000) -> None:
    jobs = [NewJob(task="noop", queue="default") for _ in range(batch)]
    for _ in range(n // batch):
        await store.submit(enqueue, Order(jobs=jobs))


async def take(store: Store, n: int) -> list[InHand]:
    room = Room(
        slots=1,
        berths={"default": [Berth(0, share=(n + 0.5) / RULES["noop"].hand, empty=False)]},
        tasks=RULES,
    )
    return list((await store.submit(lease, room)).picked.jobs())


def finished(jobs: list[InHand], now: int) -> list[Completed]:
    return [
        Completed(job.id, job.lease, now, now, job.attempt, job.queue, job.task) for job in jobs
    ]


async def rate(n: int, work: Callable[[], Awaitable[object]]) -> float:
    start = time.perf_counter()
    await work()
    return n / (time.perf_counter() - start)


async def cycle(store: Store, batch: int, rounds: int) -> dict[str, float]:
    """Jobs a second of each step, and of the three together, in batches of one size."""
    spent = {"enqueue": 0.0, "lease": 0.0, "beat": 0.0, "finish": 0.0}
    jobs = [NewJob(task="noop", queue="default") for _ in range(batch)]
    for _ in range(rounds):
        now = store.clock.now()
        marks = [time.perf_counter()]
        await store.submit(enqueue, Order(jobs=jobs))
        marks.append(time.perf_counter())
        hand = await take(store, batch)
        marks.append(time.perf_counter())
        await asyncio.gather(
            *(store.submit(beat, Beat(job.id, job.lease, now)) for job in hand[:10])
        )
        marks.append(time.perf_counter())
        await store.submit(complete, finished(hand, now))
        marks.append(time.perf_counter())
        assert len(hand) == batch
        for step, begun, ended in zip(spent, marks[:-1], marks[1:], strict=True):
            spent[step] += ended - begun
    n = batch * rounds
    total = spent["enqueue"] + spent["lease"] + spent["finish"]
    return {**{step: n / seconds for step, seconds in spent.items()}, "all": n / total}


async def measure(rows: int, sizes: list[int], rounds: int, folder: Path) -> None:
    store = Store(f"sqlite:///{folder}/store-{rows}.db", SystemClock(), "bench")
    await store.open()
    while True:
        await fill(store, 10_000)
        hand = await take(store, 10_000)
        await store.submit(complete, finished(hand, store.clock.now()))
        if hand[-1].id >= rows:
            break
    for size in sizes:
        results = [await cycle(store, size, max(1, rounds * 1000 // size // 4)) for _ in range(3)]
        line = {key: statistics.median(r[key] for r in results) for key in results[0]}
        told = "  ".join(f"{key} {value:>9,.0f}/s" for key, value in line.items())
        print(f"{rows:>9,} rows  batch {size:>5}  {told}")
    await store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 100, 500, 1000, 5000])
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".") as folder:
        for rows in options.rows:
            asyncio.run(measure(rows, options.sizes, options.rounds, Path(folder)))


if __name__ == "__main__":
    main()
