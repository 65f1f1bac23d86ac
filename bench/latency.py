"""From enqueue to start, at 100 jobs/s, and what a daemon costs that has nothing to do.

A real daemon with two workers and durability full; every job tells how long ago it was sent,
so bus, two commits and the way to the worker are all in it. Run it with
`python bench/latency.py [SECONDS]`; peers are in docs/performance.md.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from redrive.client import AsyncClient

RATE = 100  # jobs per second
IDLE = 20.0  # seconds
TICKS = os.sysconf("SC_CLK_TCK")

CONFIG = """
[daemon]
name = "bench"
state_dir = "./state"
runtime_dir = "./run"
[pools.default]
path = ["."]
processes = 2
preload = ["handlers"]
[tasks.age]
python = "handlers:age"
"""
HANDLERS = """
import time

def age(sent):
    return time.time() - sent
"""


def start_daemon(folder: Path) -> subprocess.Popen[bytes]:
    (folder / "config.toml").write_text(CONFIG)
    (folder / "handlers.py").write_text(HANDLERS)
    with (folder / "log").open("wb") as log:
        daemon = subprocess.Popen(
            [sys.executable, "-m", "redrived", "--config", str(folder / "config.toml")],
            stderr=log,
        )
    while "is up as" not in (folder / "log").read_text():
        assert daemon.poll() is None, (folder / "log").read_text()
        time.sleep(0.05)
    return daemon


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def rss(pid: int) -> float:
    line = next(
        line
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith("VmRSS")
    )
    return int(line.split()[1]) / 1024


async def ages(config: Path, count: int) -> list[float]:
    """How old each job was when its handler began, in milliseconds."""
    async with AsyncClient(config) as client:
        sent: list[asyncio.Task[object]] = []
        began = time.perf_counter()
        for n in range(count):
            await asyncio.sleep(max(0.0, began + n / RATE - time.perf_counter()))
            sent.append(asyncio.create_task(client.enqueue("age", {"sent": time.time()})))
        await asyncio.gather(*sent)
        await client.wait(str(count), timeout=10)
        found: list[float] = []
        after = None
        while len(found) < count:
            page = await client.jobs("task:age state:done", limit=500, after=after)
            found += [1000 * job.result for job in page.jobs]
            after = page.after
            if after is None:
                break
    return sorted(found)


def main(seconds: float) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        daemon = start_daemon(folder)
        try:
            time.sleep(3)  # what the start leaves to do
            before = cpu_seconds(daemon.pid)
            time.sleep(IDLE)
            share = 100 * (cpu_seconds(daemon.pid) - before) / IDLE
            print(f"idle           {share:6.2f} % of a core, goal 0.5")
            print(f"memory         {rss(daemon.pid):6.1f} MB, goal 70")
            measured = asyncio.run(ages(folder / "config.toml", round(seconds * RATE)))
            for name, place in (("p50", 0.5), ("p99", 0.99)):
                print(f"start {name}      {measured[int(place * len(measured))]:6.2f} ms")
        finally:
            daemon.terminate()
            daemon.wait()


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 10.0)
