"""Enqueueing and draining jobs that do nothing, beside Huey, PgQueuer and Celery, in turns.

redrive with two worker processes, SQLite, `durability = "full"` and every event logged; Huey
with two worker processes on SQLite, WAL and fsync; PgQueuer on an embedded PostgreSQL with
synchronous commit, two processes, a thousand at a time; Celery on a Redis that writes
nothing for a request, on one that syncs each write, and there with a result backend as well, so
one can ask for a job's end (it is asked to enqueue only). Jobs are enqueued first and drained
then: one by one by one client, by eight at once, and in bulk. At last a trickle: jobs that arrive
one by one and are run at once, by redrive and by Huey.

    PYTHONPATH=tests python bench/throughput.py [--jobs 100000] [--each 1000] [--rounds 3]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import fill
import ours
import peers
import postgresql
from ages import HANDLERS, ages, at, send
from cpu import cpu_seconds
from report import Bound, Report, at_least, options

from support.daemon import Daemon, eventually

CLIENTS = 8
TRICKLE = 500  # jobs a second
AGE = """
[tasks.age]
python = "handlers:age"
"""
Rates = dict[str, float]  # jobs a second, by what was done
ONE, MANY, BULK, DRAIN = "one by one, one client", "eight clients at once", "in bulk", "drain"


def redrive(folder: Path, chosen: argparse.Namespace) -> Rates:
    command = [sys.executable, str(peers.PROGRAMS / "redrive_fill.py"), str(chosen.each)]
    with ours.running(a_daemon(folder)) as daemon, daemon.client() as client:
        fill.warm_up(client, "noop")
        fill.put_behind_a_pause(client, "noop", 0)
        rates = {
            ONE: peers.one_by_one(command, folder, 1, chosen.each),
            MANY: peers.one_by_one(command, folder, CLIENTS, chosen.each),
        }
        began = time.perf_counter()
        fill.put_behind_a_pause(client, "noop", chosen.jobs)
        rates[BULK] = chosen.jobs / (time.perf_counter() - began)
        states = client.status().states
        began = time.perf_counter()
        fill.resume(client, "noop")
        fill.until_done(client, states["done"] + states["queued"])
        rates[DRAIN] = states["queued"] / (time.perf_counter() - began)
        return rates


def huey(folder: Path, chosen: argparse.Namespace) -> Rates:
    peers.install("Huey", "huey")
    command = peers.program("huey_fill.py", chosen.each)
    rates = {
        ONE: peers.one_by_one(command, folder, 1, chosen.each),
        MANY: peers.one_by_one(command, folder, CLIENTS, chosen.each),
    }
    with peers.running(consumer(), folder):
        rates[DRAIN] = float(peers.output(peers.program("huey_drain.py"), folder))
    return rates


def consumer() -> list[str]:
    command = [str(peers.BIN / "huey_consumer"), "huey_tasks.huey"]
    return [*command, "--workers", "2", "--worker-type", "process", "--delay", "0.001"]


def pgqueuer(folder: Path, chosen: argparse.Namespace) -> Rates:
    peers.install("PgQueuer", "pgqueuer", "asyncpg", "uvloop")
    jobs = chosen.jobs // 2
    with postgresql.a_server(folder) as server:
        with postgresql.a_database(server) as url:
            drained = postgresql.pgqueuer(url, folder, jobs, 1000)
        with postgresql.a_database(server) as url:
            filled = peers.output(peers.program("pgqueuer_fill.py", url, jobs), folder)
    return {BULK: float(filled), DRAIN: drained}


def celery(folder: Path, chosen: argparse.Namespace) -> Rates:
    return celery_on((), folder, chosen.each)


def celery_syncing(folder: Path, chosen: argparse.Namespace) -> Rates:
    return celery_on(peers.SYNCS, folder, chosen.each)


def celery_of_record(folder: Path, chosen: argparse.Namespace) -> Rates:
    return celery_on(peers.SYNCS, folder, chosen.each, "results")


def celery_on(redis: Sequence[str], folder: Path, each: int, *options: str) -> Rates:
    peers.install("Celery", "celery[redis]")
    with peers.redis(folder, *redis) as url:
        command = peers.program("celery_fill.py", each, *options)
        return {ONE: peers.one_by_one(command, folder, 1, each, REDIS_URL=url)}


SYSTEMS: dict[str, Callable[[Path, argparse.Namespace], Rates]] = {
    "redrive": redrive,
    "Huey": huey,
    "PgQueuer": pgqueuer,
    "Celery": celery,
    "Celery, syncing": celery_syncing,
    "Celery, syncing, with results": celery_of_record,
}
BESIDE: list[tuple[str, str, Bound | None, Bound | None]] = [
    (DRAIN, "Huey", at_least(15), at_least(8)),
    (DRAIN, "PgQueuer", at_least(3), at_least(1.5)),
    (ONE, "Huey", None, None),
    (ONE, "Celery", None, at_least(1)),
    (ONE, "Celery, syncing", None, None),
    (ONE, "Celery, syncing, with results", None, None),
    (MANY, "Huey", at_least(2), None),
    (BULK, "PgQueuer", at_least(1), None),
]


def a_daemon(folder: Path) -> Daemon:
    return ours.a_daemon(folder, HANDLERS, ours.NOOP + AGE)


def compare(report: Report, chosen: argparse.Namespace) -> None:
    """Each system in turn; one that cannot be had is left out."""
    found: dict[str, list[Rates]] = {name: [] for name in SYSTEMS}
    for _ in range(chosen.rounds):
        for name in list(found):
            with tempfile.TemporaryDirectory(prefix="redrive-") as folder:
                try:
                    found[name].append(SYSTEMS[name](Path(folder), chosen))
                except peers.Absent as absent:
                    report.note(str(absent))
                    del found[name]
    medians = {
        name: {what: statistics.median(rates[what] for rates in rounds) for what in rounds[0]}
        for name, rounds in found.items()
    }
    for what in (DRAIN, ONE, MANY, BULK):
        for name, rates in medians.items():
            if what in rates:
                goal = at_least(50_000) if (name, what) == ("redrive", BULK) else None
                report.add(f"{wording(what)}, {name}", rates[what], "jobs/s", goal=goal)
        for kind, peer, goal, floor in BESIDE:
            if kind == what and peer in medians:
                ratio = medians["redrive"][what] / medians[peer][what]
                report.add(f"{wording(what)}, beside {peer}", ratio, "×", goal=goal, floor=floor)


def wording(what: str) -> str:
    return what if what == DRAIN else f"enqueue {what}"


def trickle(report: Report, seconds: float) -> None:
    count = round(seconds * TRICKLE)
    with tempfile.TemporaryDirectory(prefix="redrive-") as name:
        measured, spent = trickle_of_redrive(Path(name), count)
    report.add(f"trickle of {TRICKLE} jobs/s, enqueue → start, p50", at(0.5, measured), "ms")
    report.add("the same, p99", at(0.99, measured), "ms")
    report.add("the same, CPU of the daemon", 1e6 * spent / count, "µs a job")
    try:
        with tempfile.TemporaryDirectory(prefix="redrive-") as name:
            theirs = trickle_of_huey(Path(name), count)
    except peers.Absent:
        return  # said before
    report.add("the same, p50, Huey", at(0.5, theirs), "ms")
    report.add("the same, p99, Huey", at(0.99, theirs), "ms")


def trickle_of_redrive(folder: Path, count: int) -> tuple[list[float], float]:
    """How old the jobs were when they started, and the seconds of processor for all."""
    with ours.running(a_daemon(folder)) as daemon:
        asyncio.run(send(daemon.config, 100))
        eventually(lambda: len(ages(folder / "ages")) == 100, "the workers are warm")
        assert daemon.process is not None
        before = cpu_seconds(daemon.process.pid)
        asyncio.run(send(daemon.config, count, TRICKLE))
        eventually(lambda: len(ages(folder / "ages")) == count + 100, "all have started")
        return ages(folder / "ages"), cpu_seconds(daemon.process.pid) - before


def trickle_of_huey(folder: Path, count: int) -> list[float]:
    peers.install("Huey", "huey")
    with peers.running(consumer(), folder):
        peers.output(peers.program("huey_send.py", 100, TRICKLE), folder)
        eventually(lambda: len(ages(folder / "ages")) == 100, "the workers are warm")
        peers.output(peers.program("huey_send.py", count, TRICKLE), folder)
        eventually(lambda: len(ages(folder / "ages")) == count + 100, "all have started")
        return ages(folder / "ages")


def main() -> None:
    parser = options(__doc__, rounds=3)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--each", type=int, default=1_000, help="jobs of each client one by one")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.jobs, chosen.each, chosen.rounds = 5_000, 50, 1
    report = Report(
        "throughput",
        "Enqueue and drain",
        'redrive: SQLite, `durability = "full"`, every event logged. Huey: SQLite, WAL, fsync.'
        " PgQueuer: PostgreSQL, synchronous commit, batches of 1,000. Celery: a Redis that writes"
        " nothing for a request, and one that syncs each write (`appendfsync always`), without and"
        " with results that can be asked for, as redrive's can. Two worker"
        f" processes where there are any; medians of {chosen.rounds} rounds.",
    )
    compare(report, chosen)
    trickle(report, 2 if chosen.quick else 10)
    report.write(chosen)


if __name__ == "__main__":
    main()
