"""Retries: how late they start, with a million others asleep, and when all are due at once.

First, jobs that fail once and are due again three seconds later, a hundred a second, in a store
where a million retries sleep. Then, in rounds, a hundred thousand retries due at one instant
against as many jobs of the same task that were simply enqueued. A real daemon with two worker
processes on SQLite, `durability = "full"`, every event logged.

    PYTHONPATH=tests python bench/retries.py [--sleeping 1000000] [--jobs 100000] [--rounds 3]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path

import fill
import ours
import store
from report import Report, at_least, at_most, options

from redrive.blocking import Client
from redrive.clock import SECOND
from redrive.models import Job
from support.daemon import Daemon, eventually

RATE = 100  # jobs a second that fail once
FILLING = 5_000  # jobs a second that are surely put to sleep
STARTING = 15  # seconds a daemon may take to be up and to drain as much
FLAKY = """
[tasks.flaky]
python = "handlers:flaky"
retry = { max_attempts = 2, delays = ["3s"], jitter = 0.0 }
"""
HANDLERS = """
import redrive

def noop():
    pass

def flaky():
    if redrive.current_job().attempt == 1:
        raise ConnectionError("not yet")
"""


def lateness(client: Client, seconds: float) -> list[float]:
    """Milliseconds from the due instant to the start of the second attempt, sorted."""
    count = round(seconds * RATE)
    began = time.perf_counter()
    for n in range(count):
        time.sleep(max(0.0, began + n / RATE - time.perf_counter()))
        client.enqueue("flaky")
    where = "task:flaky state:done"
    eventually(lambda: len(listed(client, where)) == count, "all of them are done", within=60)
    late = [(job.started_at or 0) - (job.available_at or 0) for job in listed(client, where)]
    return sorted(1000 * each / SECOND for each in late)


def listed(client: Client, where: str) -> list[Job]:
    page = client.jobs(where, limit=5_000)
    found = list(page.jobs)
    while page.after is not None:
        page = client.jobs(where, limit=5_000, after=page.after)
        found += page.jobs
    return found


def drain(client: Client, count: int) -> float:
    """Jobs a second of so many that were enqueued."""
    fill.put_behind_a_pause(client, "noop", count)
    goal = client.status().states["done"] + count
    began = time.perf_counter()
    fill.resume(client, "noop")
    fill.until_done(client, goal)
    return count / (time.perf_counter() - began)


def burst(client: Client, count: int, due: float) -> float:
    """Jobs a second of so many retries, from the instant at which all of them are due."""
    goal = client.status().states["done"] + count
    assert time.time() < due, "the retries were due before the rest was over: more time is needed"
    time.sleep(due - time.time())
    fill.until_done(client, goal)
    return count / (time.time() - due)


def at_one_instant(daemon: Daemon, url: str, count: int) -> tuple[float, float]:
    """Both rates of one round; the daemon is down before and after it."""
    due = time.time() + count / FILLING + STARTING
    asyncio.run(fill.fail_once(url, "noop", count, retry_at=round(due * SECOND)))
    with ours.running(daemon), daemon.client() as client:
        fill.warm_up(client, "noop")
        return drain(client, count), burst(client, count, due)


def main() -> None:
    parser = options(__doc__, rounds=3)
    parser.add_argument("--sleeping", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=20)
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.sleeping, chosen.jobs, chosen.seconds, chosen.rounds = 10_000, 5_000, 2, 1
    with tempfile.TemporaryDirectory(prefix="redrive-") as folder:
        measure(Path(folder), chosen)


def measure(folder: Path, chosen: argparse.Namespace) -> None:
    report = Report(
        "retries",
        "Retries",
        f'With {chosen.sleeping:,} retries asleep in the store; SQLite, `durability = "full"`,'
        f" every event logged, two worker processes; medians of {chosen.rounds} rounds.",
    )
    daemon = ours.a_daemon(folder, HANDLERS, ours.NOOP + FLAKY)
    path = ours.store_of(daemon)
    asyncio.run(store.make(path, chosen.sleeping, "asleep"))
    with ours.running(daemon), daemon.client() as client:
        late = lateness(client, chosen.seconds)
    report.add("retry due → started, p50", late[len(late) // 2], "ms")
    p99 = late[int(0.99 * len(late))]
    report.add("retry due → started, p99", p99, "ms", goal=at_most(20))
    rounds = [
        at_one_instant(daemon, f"sqlite:///{path}", chosen.jobs) for _ in range(chosen.rounds)
    ]
    plain, due = (statistics.median(rates) for rates in zip(*rounds, strict=True))
    report.add(f"{chosen.jobs:,} enqueued jobs drained", plain, "jobs/s")
    report.add(f"{chosen.jobs:,} retries due at one instant drained", due, "jobs/s")
    ratio = statistics.median(due / plain for plain, due in rounds)
    report.add("of the drain rate", ratio, goal=at_least(0.8))
    report.write(chosen)


if __name__ == "__main__":
    main()
