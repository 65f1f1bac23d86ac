"""A batch through its gate: what a run costs in a small and in a large one, and after a crash.

Every run is requested, waits at the gate for all the others, then for its timer of a second,
and is downloaded; the daemon is killed when half of the requests of the largest are done.

    PYTHONPATH=tests python bench/batch.py [--runs 10000]
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from report import Report, options

from redrive.blocking import Client
from redrive.instants import SECOND
from redrive.models import Event, Job
from redrive.protocol.commands import RunOrder
from redrive.protocol.queries import ListBatches
from redrive.protocol.rows import BatchRow
from support.daemon import Daemon

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


def tell(report: Report, client: Client, runs: int, since: int) -> None:
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
    name = f"{runs:,} runs"
    report.add(f"{name}, a run", 1000 * spent / runs, "ms")
    report.add(f"{name}, the gate late after its timer", late, "s")
    report.add(f"{name}, jobs repeated", sum(n > 1 for n in starts.values()))
    assert row.done == runs
    assert len(opened) == 1


def jobs_of(client: Client, runs: int) -> Iterator[Job]:
    after = None
    while True:
        page = client.jobs(f'batch:"of {runs}"', limit=5_000, after=after)
        yield from page.jobs
        after = page.after
        if after is None:
            return


def process(daemon: Daemon, runs: int, *, is_killed: bool, report: Report) -> None:
    with daemon.client() as client:
        since = client.ask(ListBatches()).as_of
        start_batch(client, runs)
        while is_killed and requested(client, runs) < runs // 2:
            time.sleep(0.05)
    if is_killed:
        daemon.kill()
        daemon.start()
    with daemon.client() as client:
        while batch(client, runs).running:
            time.sleep(0.2)
        tell(report, client, runs, since)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    chosen = parser.parse_args()
    runs = 200 if chosen.quick else chosen.runs
    report = Report(
        "batch",
        "A batch through its gate",
        "Every run is requested, waits for all the others and then for a timer of a second, and is"
        f" downloaded. The last batch, of {runs + 1:,}, is killed when half of it is requested;"
        ' SQLite, `durability = "full"`, two worker processes.',
    )
    with tempfile.TemporaryDirectory(prefix="redrive-") as folder:
        Path(folder, "handlers.py").write_text(HANDLERS)
        daemon = Daemon(Path(folder), base=CONFIG).start()
        try:
            process(daemon, runs // 10, is_killed=False, report=report)
            process(daemon, runs, is_killed=False, report=report)
            process(daemon, runs + 1, is_killed=True, report=report)
        finally:
            daemon.stop()
    report.write(chosen)


if __name__ == "__main__":
    main()
