"""The console against a real daemon: a million jobs, two thousand events a second.

Each number stands beside the budget it is held to. The console is a process of its own in a
pseudo-terminal of 120 by 44; what its table costs by itself is measured in this process, over
the same link. One console at a time, and the daemon on the same machine: on one that is busy
with other things, times tell more about those.

    PYTHONPATH=tests python bench/console.py [--jobs 1000000] [--seconds 20] [--quick]
"""

from __future__ import annotations

import asyncio
import itertools
import multiprocessing
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import store
from report import Report, at_most, options

from redrive.blocking import Client
from redrive.protocol.commands import JobOrder
from redrive_tui.app import Console
from redrive_tui.link import Link
from redrive_tui.screens.jobs import JobsPane
from redrive_tui.widgets.job_table import JobTable
from support.console_terminal import ConsoleTerminal
from support.trial import Trial

COLUMNS, LINES = 120, 44
KEYS = 200
BURST = 60  # jobs at a time
EVENTS_PER_JOB = 3
EVENTS = 2000  # a second
CONFIG = """
[store]
keep = { done = "36500d" }
[pools.default]
path = ["."]
processes = 1
[queues.shown]
priority = 100
concurrency = 10
[tasks.noop]
python = "handlers:noop"
[tasks.shown]
command = ["sleep", "3600"]
queue = "shown"
"""
BASE = """
[daemon]
name = "bench"
state_dir = "./state"
runtime_dir = "./run"
concurrency = 12
"""
HANDLERS = "def noop(**args):\n    pass\n"


@contextmanager
def console(daemon: Trial, *options: str) -> Iterator[ConsoleTerminal]:
    command = [sys.executable, "-m", "redrive_tui", "--config", str(daemon.config), *options]
    opened = ConsoleTerminal(command, columns=COLUMNS, lines=LINES)
    try:
        yield opened
    finally:
        opened.close()


def cpu_of(process: psutil.Process) -> float:
    """Seconds so far."""
    times = process.cpu_times()
    return times.user + times.system


# By itself, in this process.


async def table_alone(found: Report, daemon: Trial) -> None:
    link = Link(str(daemon.config))
    app = Console(link)
    async with app.run_test(size=(COLUMNS, LINES)) as pilot:
        while app.mirror.status is None:
            await pilot.pause(0.05)
        process = psutil.Process()
        memory, begun = process.memory_info().rss, time.perf_counter()
        await app.action_show("jobs")
        pane = app.pane
        assert isinstance(pane, JobsPane)
        table = pane.table
        while not table.is_known():
            await asyncio.sleep(0.001)
        found.add("job table ready", (time.perf_counter() - begun) * 1000, "ms", goal=at_most(250))
        await roam(found, table)
        grown = (process.memory_info().rss - memory) / 1024**2
        found.add(
            f"its memory, after roaming {table.row_count():,} rows", grown, "MB", goal=at_most(10)
        )
        table.action_first()
        await pilot.pause(0.2)
        draws = [one_draw(table) for _ in range(50)]
        found.add(
            "one screen of it drawn, median", statistics.median(draws) * 1000, "ms", goal=at_most(6)
        )
    await link.close()


async def roam(found: Report, table: JobTable) -> None:
    took: list[float] = []
    for place in (1.0, 0.5, 0.25, 0.75, 0.0):
        table.cursor = int((table.row_count() - 1) * place)
        begun = time.perf_counter()
        while table.current is None:
            await asyncio.sleep(0.001)
        took.append((time.perf_counter() - begun) * 1000)
    found.add("the longest jump to a row of them", max(took), "ms")


def one_draw(table: JobTable) -> float:
    begun = time.perf_counter()
    for y in range(table.size.height):
        table.render_line(y)
    return time.perf_counter() - begun


# In a terminal.


def start(found: Report, daemon: Trial) -> None:
    with console(daemon) as terminal:
        process = psutil.Process(terminal.process.pid)
        terminal.until_shown("1 Overview")
        found.add("import and first paint, CPU", cpu_of(process), "s", goal=at_most(0.7))
        terminal.until_shown("live")
        terminal.read_for(1)
        terminal.press("2")
        found.add(
            "from the key to its rows", terminal.until_shown(" > 1") * 1000, "ms", goal=at_most(250)
        )


def load(config: str) -> None:
    """Jobs that do nothing, so many that their events are as many as wanted."""
    due = time.monotonic()
    with Client(config=config) as client:
        while True:
            client.enqueue_many("noop", [JobOrder() for _ in range(BURST)])
            due += BURST * EVENTS_PER_JOB / EVENTS
            time.sleep(max(0.0, due - time.monotonic()))


@contextmanager
def loaded(daemon: Trial) -> Iterator[None]:
    process = multiprocessing.get_context("spawn").Process(target=load, args=[str(daemon.config)])
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


def busy(found: Report, daemon: Trial, seconds: float) -> None:
    with loaded(daemon), console(daemon) as terminal:
        process = psutil.Process(terminal.process.pid)
        terminal.until_shown("live")
        terminal.press("2")
        terminal.until_shown(" jobs  as of")
        terminal.read_for(3)
        found.add("events", rate(daemon, terminal, seconds / 2), "a second")
        found.add(
            "key to frame, p95, newest jobs first",
            p95(key_times(terminal)) * 1000,
            "ms",
            goal=at_most(50),
        )
        terminal.press("/")
        terminal.read_for(0.5)
        terminal.press("task:shown\r")
        terminal.until_shown(" of 40")
        terminal.read_for(12)  # a time under ten seconds is shown to the tenth
        found.add(
            "key to frame, p95, 40 jobs, 10 running",
            p95(key_times(terminal)) * 1000,
            "ms",
            goal=at_most(50),
        )
        spent = cpu_of(process)
        written = terminal.read_for(seconds)
        found.add(
            "40 rows, 10 changing, to the terminal",
            written / seconds / 1000,
            "KB/s",
            goal=at_most(10),
        )
        found.add("  CPU", (cpu_of(process) - spent) / seconds * 100, "%", goal=at_most(5))
        terminal.press("1")
        terminal.until_shown("NEEDS ATTENTION")
        terminal.read_for(2)
        spent = cpu_of(process)
        written = terminal.read_for(seconds)
        found.add(
            "Overview meanwhile, to the terminal",
            written / seconds / 1000,
            "KB/s",
            goal=at_most(10),
        )
        found.add("  CPU", (cpu_of(process) - spent) / seconds * 100, "%", goal=at_most(5))
        found.add(
            "memory of the console", process.memory_info().rss / 1024**2, "MB", goal=at_most(90)
        )


def rate(daemon: Trial, terminal: ConsoleTerminal, seconds: float) -> float:
    before = daemon.ask.status().seq
    terminal.read_for(seconds)
    return (daemon.ask.status().seq - before) / seconds


def key_times(terminal: ConsoleTerminal) -> list[float]:
    """Seconds from a key to the cursor on another row, up and down by turns."""
    times: list[float] = []
    for key in itertools.islice(itertools.cycle("jjjkk"), KEYS):
        before, begun = cursor(terminal), time.perf_counter()
        terminal.press(key)
        while cursor(terminal) == before and time.perf_counter() - begun < 1:
            terminal.read(0.01)
        times.append(time.perf_counter() - begun)
        terminal.read_for(0.03)
    return times


def cursor(terminal: ConsoleTerminal) -> int:
    return next((y for y, line in enumerate(terminal.screen.lines) if line[1:2] == ">"), -1)


def p95(times: list[float]) -> float:
    return statistics.quantiles(times, n=20)[-1]


def idle(found: Report, daemon: Trial, seconds: float) -> None:
    with console(daemon) as terminal:
        process = psutil.Process(terminal.process.pid)
        terminal.until_shown("live")
        terminal.press("2")  # where nothing changes while nothing happens
        terminal.read_for(3)
        spent = cpu_of(process)
        written = terminal.read_for(seconds)
        found.add(
            "idle, the clock alone, to the terminal", written / seconds, "B/s", goal=at_most(500)
        )
        found.add("  CPU", (cpu_of(process) - spent) / seconds * 100, "%", goal=at_most(2))


def lost(found: Report, daemon: Trial) -> None:
    with console(daemon) as terminal:
        terminal.until_shown("live")
        terminal.read_for(2)
        daemon.signal(signal.SIGSTOP)
        found.add(
            "daemon blocked until lagging is told",
            terminal.until_shown("lagging"),
            "s",
            goal=at_most(3),
        )
        daemon.signal(signal.SIGCONT)
        terminal.until_shown("live")
        terminal.read_for(2)
        daemon.pull_the_plug()
        found.add(
            "daemon killed until lost is told", terminal.until_shown("lost"), "s", goal=at_most(1)
        )
        daemon.start()
        found.add(
            "daemon back until live is told", terminal.until_shown("live"), "s", goal=at_most(3)
        )


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=20)
    chosen = parser.parse_args()
    jobs, seconds = (20_000, 4.0) if chosen.quick else (chosen.jobs, chosen.seconds)
    found = Report(
        "console",
        "The console",
        f"A real daemon on SQLite with {jobs:,} jobs in its store, the console in a terminal of "
        f"{COLUMNS} by {LINES}; what its table costs by itself is measured in one process with it.",
    )
    with tempfile.TemporaryDirectory(prefix="redrive-") as name:
        folder = Path(name)
        (folder / "state").mkdir(mode=0o700)
        (folder / "handlers.py").write_text(HANDLERS)
        asyncio.run(store.make(folder / "state" / "redrive.db", jobs, "done"))
        daemon = Trial(folder, CONFIG, BASE)
        daemon.start()
        try:
            start(found, daemon)
            asyncio.run(table_alone(found, daemon))
            idle(found, daemon, seconds)
            daemon.enqueue_many("shown", 40)
            busy(found, daemon, seconds)
            lost(found, daemon)
        finally:
            daemon.pull_the_plug()
    found.write(chosen)


if __name__ == "__main__":
    main()
