"""What wakes the dispatcher, with the sweep that would hide a lost wake-up out of the way."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from redrive.clock import SECOND
from redrive.lifecycle import JobState
from redrive.protocol.commands import PauseIt, ResumeIt
from redrived import descriptors
from redrived.api import pausing
from redrived.engine import command_runner, dispatcher
from redrived.store.leases import Leased, lease
from redrived.store.picking import Room
from redrived.store.unit import Unit
from support.engine import BASE, TESTER, WITHIN, running

TASKS = """
[tasks.tiny]
command = "true"
"""

CALL = """
[tasks.call]
http = { url = "http://127.0.0.1:1/" }
"""

BULK = """
[queues.urgent]
priority = 100
[queues.bulk]
priority = 10
[tasks.small]
command = "while [ ! -e go ]; do sleep 0.02; done"
queue = "bulk"
[tasks.urgent]
command = ["true"]
queue = "urgent"
"""

PYTHON = """
[tasks.absent]
python = "builtins:dict"
"""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """An entry for each time that the store is asked for a lease, by no sweep."""
    rooms_of: list[int] = []

    def counted(unit: Unit, rooms: Sequence[Room]) -> list[Leased]:
        rooms_of.append(len(rooms))
        return lease(unit, rooms)

    monkeypatch.setattr(dispatcher, "SWEEP", 3600.0)
    monkeypatch.setattr(dispatcher, "lease", counted)
    return rooms_of


@pytest.mark.parametrize("name", ["task:tiny", "queue:default"])
async def test_what_is_resumed_goes_on_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(dispatcher, "SWEEP", 3600.0)
    async with running(tmp_path, TASKS) as bench:
        await pausing.pause(bench.engine, TESTER, PauseIt(name=name))
        [id] = await bench.enqueue("tiny")
        await pausing.resume(bench.engine, TESTER, ResumeIt(name=name))
        assert (await bench.ended(id)).state is JobState.DONE


async def test_the_store_is_asked_once_for_a_job_that_comes_alone(
    tmp_path: Path, asked: list[int]
) -> None:
    async with running(tmp_path, TASKS) as bench:
        [first] = await bench.enqueue("tiny")
        await bench.ended(first)
        before = len(asked)
        for count in range(1, 4):
            [id] = await bench.enqueue("tiny")
            assert (await bench.ended(id)).state is JobState.DONE
            assert len(asked) == before + count


@pytest.mark.parametrize(
    "rated", [TASKS + 'rate = "2/s"', TASKS + '[queues.default]\nrate = "2/s"']
)
async def test_what_a_rate_held_up_goes_on_when_it_allows_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rated: str
) -> None:
    monkeypatch.setattr(dispatcher, "SWEEP", 3600.0)
    async with running(tmp_path, rated) as bench:
        ids = await bench.enqueue("tiny", count=4)
        for id in ids:
            assert (await bench.ended(id)).state is JobState.DONE
        begun = sorted(event.at for event in bench.heard if event.type == "action_started")
        assert begun[2] - begun[0] >= SECOND


async def test_what_may_not_run_is_looked_at_once(tmp_path: Path, asked: list[int]) -> None:
    async with running(tmp_path, TASKS) as bench:
        await pausing.pause(bench.engine, TESTER, PauseIt(name="task:tiny"))
        await bench.enqueue("tiny")
        async with asyncio.timeout(WITHIN):
            while not bench.engine.dispatcher.is_leasing or bench.engine.store.writer.backlog:
                await asyncio.sleep(0)
        before = len(asked)
        for count in range(1, 4):
            await bench.enqueue("tiny")
            assert len(asked) == before + count
            async with asyncio.timeout(WITHIN):
                while not bench.engine.dispatcher.is_leasing:
                    await asyncio.sleep(0)


async def test_a_job_that_comes_to_an_idle_daemon_begins_in_the_commit_that_stores_it(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, TASKS) as bench:
        [first] = await bench.enqueue("tiny")
        await bench.ended(first)
        landed = bench.engine.store.landed
        told: list[list[str]] = []
        landed.append(lambda group: told.append([event[1] for event in group.events]))
        [id] = await bench.enqueue("tiny")
        await bench.ended(id)

    assert ["step_started", "action_started"] in told


async def test_a_closed_dispatcher_begins_nothing_that_comes(tmp_path: Path) -> None:
    async with running(tmp_path, TASKS) as bench:
        [first] = await bench.enqueue("tiny")
        await bench.ended(first)
        bench.engine.dispatcher.close()
        [id] = await bench.enqueue("tiny")

        assert await bench.told(id) == ["step_started"]
        assert bench.engine.is_idle


async def test_what_was_leased_for_a_worker_that_has_exited_comes_back(tmp_path: Path) -> None:
    async with running(tmp_path, TASKS + PYTHON) as bench:
        [first] = await bench.enqueue("absent")
        await bench.ended(first)
        [pool] = bench.engine.python.pools.values()
        workers = list(pool.workers)
        for worker in workers:
            os.kill(worker.process.pid, signal.SIGKILL)
        for worker in workers:
            await worker.gone.wait()  # the lease that stands still counts on it
        [id] = await bench.enqueue("absent")
        await bench.ended(id)

        assert (await bench.job(id)).state is JobState.DONE


async def test_what_comes_once_a_pause_is_answered_waits(tmp_path: Path) -> None:
    """A lease that stands since before it would take the job in the commit that brings it."""
    async with running(tmp_path, TASKS) as bench:
        dispatcher = bench.engine.dispatcher
        async with asyncio.timeout(WITHIN):
            while not dispatcher.is_leasing:
                await asyncio.sleep(0)
        await pausing.pause(bench.engine, TESTER, PauseIt(name="task:tiny"))

        assert not dispatcher.is_leasing  # before it has had its turn
        [id] = await bench.enqueue("tiny")
        assert await bench.told(id) == ["step_started"]


@pytest.mark.parametrize("says_so", [True, False])
async def test_no_news_is_lost_while_the_lease_that_stood_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says_so: bool
) -> None:
    """That other rules hold is said by a wake-up; that there is more room, by less than that."""
    is_made, go_on = threading.Event(), threading.Event()

    def slowly(unit: Unit, rooms: Sequence[Room]) -> list[Leased]:
        leased = lease(unit, rooms)
        if unit.has_made_ready:
            is_made.set()
            go_on.wait(WITHIN)
        return leased

    monkeypatch.setattr(dispatcher, "SWEEP", 3600.0)
    monkeypatch.setattr(dispatcher, "lease", slowly)
    async with running(tmp_path, CALL) as bench:
        with monkeypatch.context() as patched:
            patched.setattr(descriptors, "are_scarce", lambda opening=0: True)
            bench.engine.dispatcher.wake()
            coming: list[asyncio.Task[list[int]]] = []
            while not is_made.is_set():  # the first ones may come before a lease stands
                coming.append(asyncio.create_task(bench.enqueue("call")))
                await asyncio.sleep(0.02)
        if says_so:
            bench.engine.dispatcher.wake()
        else:
            bench.engine.settler.freed()
        for _ in range(5):  # it is heard, and nothing can be done about it yet
            await asyncio.sleep(0)
        go_on.set()
        for [id] in await asyncio.gather(*coming):
            await bench.event("action_started", id)


async def test_what_waits_behind_a_command_makes_way_for_a_queue_that_goes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_runner, "BEGUN_AFTER", 3600.0)  # it would go back by itself
    one_slot = BASE.replace("concurrency = 4", "concurrency = 1")
    async with running(tmp_path, BULK, one_slot) as bench:
        bench.engine.pace.note("small", 1, 0.001)
        first, *behind = await bench.enqueue("small", 20)
        async with asyncio.timeout(WITHIN):
            while bench.engine.commands.in_hand() < len(behind):
                await asyncio.sleep(0)
            [urgent] = await bench.enqueue("urgent")
            while bench.engine.commands.in_hand() > 0:
                await asyncio.sleep(0)
        (tmp_path / "go").touch()
        for id in (urgent, *behind):
            await bench.ended(id)
        begun = [event.job for event in bench.heard if event.type == "action_started"]
        assert begun[:2] == [first, urgent]
