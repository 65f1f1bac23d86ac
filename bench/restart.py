"""A big store: how soon a killed daemon answers again, and what asking it costs.

A store of a million jobs, all done, and one where they sleep until their next attempt. In each
round the daemon is killed (`kill -9`) in the middle of other work and started again, until
`status` is answered; on SQLite, `durability = "full"`. Then `redrive status` as a process.

    PYTHONPATH=tests python bench/restart.py [--jobs 1000000] [--rounds 5]
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import fill
import ours
import store
from report import Report, at_most, options

from redrive.errors import RedriveError
from support.daemon import Daemon, eventually

HEAVY = {"alembic", "apscheduler", "httpx", "jinja2", "psutil", "re2", "sqlalchemy", "textual"}
UNDER_WAY = 20_000  # jobs to be drained when the daemon is killed
HANDLERS = "def noop():\n    pass\n"


def killed_and_back(daemon: Daemon) -> float:
    """Seconds from the start of the process to the first answer."""
    with daemon.client() as client:
        fill.put_behind_a_pause(client, "noop", UNDER_WAY)
        fill.resume(client, "noop")
        time.sleep(0.1)  # it is in the middle of it
    daemon.kill()
    began = time.perf_counter()
    daemon.start(ready=False)
    eventually(lambda: answers(daemon), "redrived answers", every=0.005)
    took = time.perf_counter() - began
    until_idle(daemon)
    return took


def answers(daemon: Daemon) -> bool:
    with daemon.client() as client:
        try:
            client.status()
        except RedriveError:
            return False
        return True


def until_idle(daemon: Daemon) -> None:
    with daemon.client() as client:

        def is_idle() -> bool:
            states = client.status().states
            return not states.get("queued") and not states.get("leased")

        eventually(is_idle, "the rest is done", within=60)


def cpu_of(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def heavy_imports(daemon: Daemon) -> set[str]:
    """What `redrive status` imports of what only the daemon or the console needs."""
    command = [sys.executable, "-X", "importtime", "-m", "redrive"]
    command += ["--config", str(daemon.config), "status"]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    names = (line.rpartition("|")[2].strip() for line in told.splitlines())
    return HEAVY & {name.partition(".")[0] for name in names}


def measure(folder: Path, kind: str, report: Report, chosen: argparse.Namespace) -> None:
    daemon = ours.a_daemon(folder, HANDLERS, ours.NOOP)
    asyncio.run(store.make(ours.store_of(daemon), chosen.jobs, kind))
    with ours.running(daemon):
        times = [killed_and_back(daemon) for _ in range(chosen.rounds)]
        what = f"start after kill -9, {chosen.jobs:,} jobs {kind}"
        report.add(what, statistics.median(times), "s", goal=at_most(3))
        if kind == "done":
            spent = [cpu_of(daemon.command("status")) for _ in range(2 * chosen.rounds)]
            median = statistics.median(spent)
            report.add("`redrive status`, CPU", median, "s", goal=at_most(0.25))
            heavy = heavy_imports(daemon)
            report.add("heavy packages it imports", len(heavy), goal=at_most(0))
            if heavy:
                report.note(f"`redrive status` imports {', '.join(sorted(heavy))}.")


def main() -> None:
    parser = options(__doc__, rounds=5)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.jobs, chosen.rounds = 10_000, 1
    report = Report(
        "restart",
        "A big store, and the command line",
        "From the start of the process to the first answer, after a `kill -9` in the middle of"
        f' work; SQLite, `durability = "full"`; medians of {chosen.rounds} rounds.',
    )
    for kind in ("done", "asleep"):
        with tempfile.TemporaryDirectory(prefix="redrive-") as folder:
            measure(Path(folder), kind, report, chosen)
    report.write(chosen)


if __name__ == "__main__":
    main()
