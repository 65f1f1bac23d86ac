"""`kill -9` of a process that enqueues: every job it was told of is there afterwards."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from redrive.clock import SystemClock
from redrive.lifecycle import JobState
from redrived.store import jobs
from redrived.store.database import Database
from redrived.store.store import Store
from support.clock import FakeClock
from support.ground import Ground
from support.invariants import check
from support.open_store import url_of

# Several clients at once, so that it dies in the middle of groups; what has been answered is
# printed, and a print that has reached us was answered before.
PROGRAM = """
import asyncio, os, sys
from redrive.clock import SystemClock
from redrived.store.enqueue import NewJob, Order, enqueue
from redrived.store.picking import Room, TaskRules
from redrived.store.leases import lease
from redrived.store.settle import Completed, complete
from redrived.store.store import Store

def say(kind, ids):
    os.write(1, f"{kind} {' '.join(map(str, ids))}\\n".encode())

async def add(store, n):
    order = Order(jobs=[NewJob(task="work", queue="default")] * n)
    while True:
        say("added", [place.id for place in await store.submit(enqueue, order)])

async def work(store):
    while True:
        room = Room(slots=10, tasks={"work": TaskRules()})
        taken = list((await store.submit(lease, room)).picked.jobs())
        done = [
            Completed(j.id, j.lease, None, store.clock.now(), j.attempt, j.queue, j.task)
            for j in taken
        ]
        if done:
            await store.submit(complete, done, must_land=True)
            say("done", [job.job for job in done])

async def main():
    store = Store(sys.argv[1], SystemClock(), "n1")
    await store.open()
    await asyncio.gather(*(add(store, n) for n in (1, 1, 2, 3, 50)), work(store))

asyncio.run(main())
"""


@pytest.fixture
def program(database: Database) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, url_of(database)], stdout=subprocess.PIPE
    ) as process:
        yield process
        process.kill()


def listen(process: subprocess.Popen[bytes], lines: int) -> dict[str, set[int]]:
    """What it says until it has said so much, and then what is left in the pipe after its end."""
    told: dict[str, set[int]] = {"added": set(), "done": set()}
    assert process.stdout is not None
    for n, line in enumerate(process.stdout):
        if n == lines:
            process.send_signal(signal.SIGKILL)
        if line.endswith(b"\n"):  # the last one may be torn
            kind, *ids = line.decode().split()
            told[kind] |= {int(id) for id in ids}
    assert process.wait() == -signal.SIGKILL
    return told


@pytest.mark.parametrize("lines", [0, 40, 200])
def test_every_job_that_was_accepted_survives_a_kill(
    database: Database, program: subprocess.Popen[bytes], lines: int
) -> None:
    told = listen(program, lines)

    async def open_again() -> None:
        store = Store(url_of(database), SystemClock(), "n1")
        await store.open()
        await store.close()

    asyncio.run(open_again())
    ground = Ground(database, FakeClock())
    check(ground)
    there = {job.id: job.state for job in ground.ask(jobs.get_many, sorted(told["added"]))}
    assert there.keys() == told["added"] != set()
    assert all(there[id] == JobState.DONE for id in told["done"] & there.keys())
