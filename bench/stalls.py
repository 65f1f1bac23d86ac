"""Stalled attempts among ten thousand: how long after `stalled_after` they are noticed.

A real daemon runs ten thousand commands that sleep; one process sends the sign of life of each
(`WATCHDOG=1`, as sd_notify has it) every five seconds, and then forgets a hundred of them.
Noticed is when `action_stalled` is written, counted from the last sign of life. The daemon needs
four open files a command; where it may not have them there are fewer commands.

A worker that is killed is noticed at once: `action_lost` is written so long after its SIGKILL.

    PYTHONPATH=tests python bench/stalls.py [--commands 10000]
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import signal
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path

import psutil
from report import Report, at_most, options

from redrive.blocking import Client
from redrive.clock import SECOND
from redrive.models import Event
from redrive.protocol.commands import JobOrder
from redrived import descriptors
from support.daemon import Daemon, eventually

EVERY = 5.0  # seconds between the signs of life of one command
STALLED_AFTER = 20.0  # seconds
FORGOTTEN = 100
PATIENCE = 150.0  # seconds for an answer, and for the end of the forgotten
OPEN_FILES = 4  # for each command
ITS_OWN = descriptors.KEPT + 200  # what no attempt may take, and what it has open itself
CONFIG = f"""
[daemon]
name = "bench"
state_dir = "./state"
runtime_dir = "./run"
concurrency = {{commands}}
shutdown_grace = "1s"
[tasks.sleep]
command = ["sleep", "3600"]
heartbeat = {{{{ from = "notify", every = "{EVERY:g}s", stalled_after = "{STALLED_AFTER:g}s" }}}}
grace = "1s"
"""
KILLED = 20  # workers, one after the other
LOSING = """
[daemon]
name = "bench"
state_dir = "./state"
runtime_dir = "./run"
shutdown_grace = "1s"
[pools.default]
path = ["."]
[tasks.hang]
python = "hanging:hang"
"""
HANGING = """
import os, time

def hang(path):
    with open(path + ".new", "w") as file:
        file.write(str(os.getpid()))
    os.rename(path + ".new", path)
    time.sleep(3600)
"""


def beat(folder: Path, forgotten: int, last_words: Connection) -> None:
    """Beat for all commands, twice; from then on without the first few.

    Tells when each of those was last heard of, by its job; beats until it is killed.
    """
    mouth = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    ears = ears_of(folder)
    last = {}
    for turn in range(1_000_000):
        began = time.monotonic()
        for n, ear in enumerate(ears if turn < 2 else ears[forgotten:]):
            time.sleep(max(0.0, began + n * EVERY / len(ears) - time.monotonic()))
            try:
                mouth.sendto(b"WATCHDOG=1", str(ear))
            except OSError:
                continue  # it was ended
            if turn == 1 and n < forgotten:
                last[job_of(ear)] = time.time()
        if turn == 1:
            last_words.send(last)


def ears_of(folder: Path) -> list[Path]:
    """The sockets of the commands that have been started."""
    return sorted(folder.glob("*.notify"), key=job_of)


def job_of(ear: Path) -> int:
    return int(ear.name.partition(".")[0])


@contextmanager
def beating(daemon: Daemon, forgotten: int) -> Iterator[dict[int, float]]:
    """When the forgotten were last heard of, while the others go on beating."""
    ours, theirs = multiprocessing.Pipe()
    arguments = (daemon.folder / "run" / "attempts", forgotten, theirs)
    process = multiprocessing.get_context("spawn").Process(target=beat, args=arguments)
    process.start()
    try:
        yield ours.recv()
    finally:
        process.kill()
        process.join()


def told(client: Client, kind: str, after: int) -> list[Event]:
    found: list[Event] = []
    while page := client.events(after=after, limit=5_000).events:
        found += [event for event in page if event.type == kind]
        after = page[-1].seq
    return found


def cpu_share(pid: int, seconds: float) -> float:
    process = psutil.Process(pid)
    process.cpu_percent()
    time.sleep(seconds)
    return process.cpu_percent()


def room_for(commands: int) -> int:
    """How many the daemon may have files open for: all of them, if we may grant it that."""
    wanted = commands * OPEN_FILES + ITS_OWN
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(wanted, most)))
    except (OSError, ValueError):
        return min(commands, (most - ITS_OWN) // OPEN_FILES)
    return commands


def end(daemon: Daemon) -> None:
    assert daemon.process is not None
    children = psutil.Process(daemon.process.pid).children(recursive=True)
    daemon.kill()
    for child in children:
        with suppress(psutil.NoSuchProcess):
            child.kill()


def measure(folder: Path, chosen: argparse.Namespace) -> None:
    commands = room_for(chosen.commands)
    forgotten = min(FORGOTTEN, commands // 10)
    report = Report(
        "stalls",
        "Noticing what stalls",
        f"Of {commands:,} commands that beat every {EVERY:g} s, {forgotten} fall silent. Counted"
        f" from the end of the {STALLED_AFTER:g} s they may be silent to `action_stalled`;"
        ' SQLite, `durability = "full"`.',
    )
    daemon = Daemon(folder, base=CONFIG.format(commands=commands)).start()
    try:
        with Client(daemon.config, timeout=PATIENCE) as client:
            client.enqueue_many("sleep", (JobOrder() for _ in range(commands)))
            eventually(lambda: running(client) == commands, "all of them run", within=120)
            attempts = folder / "run" / "attempts"
            eventually(lambda: len(ears_of(attempts)) == commands, "they are started", within=120)
            seq = client.status().seq
            with beating(daemon, forgotten) as last:
                assert daemon.process is not None
                busy = cpu_share(daemon.process.pid, STALLED_AFTER / 2)
                eventually(
                    lambda: client.status().states.get("dead", 0) >= forgotten,
                    "the forgotten are ended",
                    within=PATIENCE,
                )
            noticed = {
                event.job: event.at / SECOND for event in told(client, "action_stalled", seq)
            }
            ended = told(client, "step_retry_exhausted", seq)[-1].at / SECOND - max(
                noticed.values()
            )
            late = sorted(noticed.pop(job) - at - STALLED_AFTER for job, at in last.items())
            report.add("noticed late, p50", late[len(late) // 2], "s")
            report.add("noticed late, the last of them", late[-1], "s", goal=at_most(1))
            report.add("of the others accused", len(noticed), goal=at_most(0))
            report.add("from then until the last is killed and settled", ended, "s")
            report.add("CPU of the daemon while all beat", busy, "% of a core")
    finally:
        end(daemon)
    (folder / "losing").mkdir()
    lost = noticed_lost(folder / "losing", KILLED)
    report.add("a killed worker noticed after, p50", lost[len(lost) // 2], "ms")
    report.add("the same, the last of them", lost[-1], "ms", goal=at_most(1000))
    report.write(chosen)


def noticed_lost(folder: Path, times: int) -> list[float]:
    """Milliseconds from the SIGKILL of a worker to `action_lost`, the longest last."""
    (folder / "hanging.py").write_text(HANGING)
    daemon = Daemon(folder, base=LOSING).start()
    took: list[float] = []
    try:
        with Client(daemon.config) as client:
            for n in range(times):
                pid = folder / f"{n}.pid"
                job = client.enqueue("hang", {"path": str(pid)}).id
                eventually(pid.exists, "the handler runs")
                at = time.time()
                os.kill(int(pid.read_text()), signal.SIGKILL)
                client.wait(job)
                [lost] = told(client, "action_lost", 0)[n:]
                took.append((lost.at / SECOND - at) * 1000)
    finally:
        end(daemon)
    return sorted(took)


def running(client: Client) -> int:
    return client.status().states.get("leased", 0)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--commands", type=int, default=10_000)
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.commands = 200
    with tempfile.TemporaryDirectory(prefix="redrive-") as folder:
        measure(Path(folder), chosen)


if __name__ == "__main__":
    main()
