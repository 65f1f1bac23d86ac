"""A batch through its gate: what a run costs in a small and in a large one, and after a crash.

Every run is requested, waits at the gate for all the others, then for its timer of a second,
and is downloaded; the daemon is killed when half of the requests of the largest are done. Run it
with `python bench/batch.py [RUNS]`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from redrive.blocking import Client
from redrive.instants import SECOND
from redrive.models import Event, Job
from redrive.protocol.commands import RunOrder
from redrive.protocol.queries import ListBatches
from redrive.protocol.rows import BatchRow

CONFIG = """
[daemon]
name = "bench"
state_dir = "./state"
runtime_dir = "./run"
[pools.default]
path = ["."]
processes = 2
[queues.bulk]
operations = ["request", "download"]
[tasks.work]
python = "handlers:work"
queue = "bulk"
retry = 3
[[pipelines.campaign.steps]]
name = "request"
task = "work"
operation = "request"
[[pipelines.campaign.steps]]
name = "download"
task = "work"
operation = "download"
gate = "batch"
delay = "1s"
"""
HANDLERS = "def work(item):\n    return item\n"


def start_daemon(folder: Path) -> subprocess.Popen[bytes]:
    with (folder / "log").open("wb") as log:
        daemon = subprocess.Popen(
            [sys.executable, "-m", "redrived", "--config", str(folder / "config.toml")],
            stderr=log,
        )
    while "is up as" not in (folder / "log").read_text():
        assert daemon.poll() is None, (folder / "log").read_text()
        time.sleep(0.05)
    return daemon


def start_batch(client: Client, runs: int) -> None:
    orders = [RunOrder(args={"item": n}, key=f"{n}", batch=f"of {runs}") for n in range(runs)]
    for at in range(0, runs, 1_000):
        client.start_many("campaign", orders[at : at + 1_000])


def batch(client: Client, runs: int) -> BatchRow:
    rows: list[BatchRow] = client.ask(ListBatches()).batches
    return next(row for row in rows if row.name == f"of {runs}")


def requested(client: Client, runs: int) -> int:
    return batch(client, runs).phases.get("request", {}).get("done", 0)


def log_after(client: Client, seq: int) -> list[Event]:
    events: list[Event] = []
    while page := client.events(after=events[-1].seq if events else seq, limit=5_000).events:
        events += page
    return events


def report(client: Client, runs: int, since: int) -> None:
    row = batch(client, runs)
    events = log_after(client, since)
    opened = [event for event in events if event.type == "gate_opened"]
    steps = {job.id: job.step for job in jobs_of(client, runs)}
    ended = [event for event in events if event.type == "action_completed"]
    settled = max(event.at for event in ended if steps[event.job or 0] == "request")
    late = (opened[0].at - settled) / SECOND - 1
    last = max(event.at for event in ended)
    began = min(event.at for event in events if event.type == "execution_started")
    spent = (last - began) / SECOND - (opened[0].at - settled) / SECOND
    starts = Counter(event.job for event in events if event.type == "action_started")
    print(
        f"{row.runs:6,} runs  {row.done:6,} done  {1000 * spent / runs:6.2f} ms a run"
        f"  gate opened {len(opened)}×, {late:.2f} s after its timer"
        f"  {sum(n > 1 for n in starts.values())} jobs repeated"
    )


def jobs_of(client: Client, runs: int) -> Iterator[Job]:
    after = None
    while True:
        page = client.jobs(f'batch:"of {runs}"', limit=5_000, after=after)
        yield from page.jobs
        after = page.after
        if after is None:
            return


def main(largest: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "config.toml").write_text(CONFIG)
        (folder / "handlers.py").write_text(HANDLERS)
        daemon = start_daemon(folder)
        try:
            for runs, is_killed in ((largest // 10, False), (largest, False), (largest + 1, True)):
                with Client(folder / "config.toml") as client:
                    since = client.ask(ListBatches()).as_of
                    start_batch(client, runs)
                    while is_killed and requested(client, runs) < runs // 2:
                        time.sleep(0.05)
                if is_killed:
                    daemon.kill()
                    daemon.wait()
                    daemon = start_daemon(folder)
                with Client(folder / "config.toml") as client:
                    while batch(client, runs).running:
                        time.sleep(0.2)
                    report(client, runs, since)
        finally:
            daemon.terminate()
            daemon.wait()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
