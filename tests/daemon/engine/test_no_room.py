"""A machine that has no room for one more command: all wait, at no cost, and are told why."""

from __future__ import annotations

import asyncio
import errno
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from redrive.lifecycle import JobState
from redrive.protocol.commands import Act
from redrive.protocol.queries import Doctor, Status, Why
from redrived import descriptors
from redrived.api import acting
from redrived.api.doctor import doctor
from redrived.api.status import status
from redrived.api.why import why
from redrived.engine import shortage
from redrived.processes.commands import Commands
from redrived.processes.spawn import no_room
from support.engine import TESTER, Bench, running

TASKS = '[tasks.run]\ncommand = ["true"]\n[tasks.wait]\ncommand = ["sleep", "300"]\n'


class Full:
    """A machine without descriptors, until there are some."""

    def __init__(self) -> None:
        self.room = 0
        self.refused = 0

    def start(self, *arguments: Any, **named: Any) -> Any:
        if self.room == 0:
            self.refused += 1
            raise no_room(OSError(errno.EMFILE, "Too many open files"))
        self.room -= 1
        return START(*arguments, **named)


START = Commands.start


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Full:
    machine = Full()
    monkeypatch.setattr(Commands, "start", lambda *args, **named: machine.start(*args, **named))
    # Longer than a lease takes on a busy machine.
    monkeypatch.setattr(shortage, "REST", 0.2)
    monkeypatch.setattr(shortage, "LONGEST_REST", 0.2)
    return machine


async def refusals(machine: Full, n: int) -> None:
    async with asyncio.timeout(20):
        while machine.refused < n:
            await asyncio.sleep(0.005)


async def test_all_wait_while_one_is_tried_now_and_then(tmp_path: Path, full: Full) -> None:
    async with running(tmp_path, TASKS) as bench:
        ids = await bench.enqueue("run", 200)
        await refusals(full, 5)
        states = Counter([(await bench.job(id)).state for id in ids])
        assert states[JobState.QUEUED] >= len(ids) - 1
        told = Counter(event.type for event in bench.heard)
        # At first every slot had one; since then one at a time, and only that is told of.
        assert told["action_started"] <= full.refused + 4
        assert (await bench.job(ids[-1])).attempts == 0

        full.room = 1_000_000
        for id in ids:
            job = await bench.ended(id)
            assert (job.state, job.attempts) == (JobState.DONE, 1)


async def test_it_is_told_wherever_one_looks_and_no_longer_once_it_is_over(
    tmp_path: Path, full: Full
) -> None:
    async with running(tmp_path, TASKS) as bench:
        [id] = await bench.enqueue("run")
        await refusals(full, 2)
        said = "cannot start a command now: Too many open files"
        hint = "raise LimitNOFILE of the service, or lower [daemon] concurrency"
        told = (
            ("no_room", said, hint),
            [("commands", f"{said}: {hint}")],
            [("commands", said, hint)],
        )
        async with asyncio.timeout(20):
            while await looked(bench, id) != told:  # just now it may be tried
                await asyncio.sleep(0.01)

        full.room = 1_000_000
        await bench.ended(id)
        await until_nothing_is_told(bench, id)


async def test_it_is_over_when_what_waited_is_wanted_no_more(tmp_path: Path, full: Full) -> None:
    async with running(tmp_path, TASKS) as bench:
        [id] = await bench.enqueue("run")
        await refusals(full, 2)
        await acting.act(bench.engine, TESTER, Act(verb="cancel", ids=[str(id)]))
        await until_nothing_is_told(bench, id)


async def until_nothing_is_told(bench: Bench, id: int) -> None:
    async with asyncio.timeout(20):
        while (await looked(bench, id))[1:] != ([], []):
            await asyncio.sleep(0.01)


async def looked(bench: Bench, id: int) -> tuple[Any, ...]:
    engine = bench.engine
    reply = await why(engine, TESTER, Why(id=str(id)))
    found = [(each.kind, each.text) for each in (await status(engine, TESTER, Status())).attention]
    checks = [
        (c.name, c.text, c.hint)
        for c in (await doctor(engine, TESTER, Doctor())).checks
        if not c.ok
    ]
    return (reply.code, reply.text, reply.hint), found, checks


async def test_the_end_of_one_makes_room_for_the_next(
    tmp_path: Path, full: Full, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shortage, "REST", 3_600.0)
    monkeypatch.setattr(shortage, "LONGEST_REST", 3_600.0)
    full.room = 1
    async with running(tmp_path, TASKS) as bench:
        [long] = await bench.enqueue("wait")
        await bench.event("action_started", long)
        [id] = await bench.enqueue("run")
        await refusals(full, 1)
        full.room = 1
        attempt = bench.engine.attempts.get(long)
        assert attempt is not None
        attempt.executor.end(attempt, 0.0)

        assert (await bench.ended(id)).state is JobState.DONE


async def test_calls_wait_while_descriptors_are_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = (
        '[tasks.call]\nhttp = { url = "http://127.0.0.1:1/" }\n[tasks.run]\ncommand = ["true"]\n'
    )
    async with running(tmp_path, config) as bench:
        with monkeypatch.context() as patched:
            patched.setattr(descriptors, "are_scarce", lambda opening=0: True)
            bench.engine.dispatcher.wake()  # the lease that stands was offered before
            [call] = await bench.enqueue("call")
            [id] = await bench.enqueue("run")
            await bench.event("job_interrupted", id)  # so much later, the call has not begun
            assert await bench.told(call) == ["step_started"]
            reply = await why(bench.engine, TESTER, Why(id=str(call)))
            assert (reply.code, reply.text) == (
                "no_room",
                "no call can be made now: few descriptors are left",
            )
        bench.engine.dispatcher.wake()

        assert (await bench.event("action_error", call)).job == call


async def test_what_one_command_alone_cannot_have_holds_up_no_other(tmp_path: Path) -> None:
    config = """
[tasks.beats]
command = ["true"]
heartbeat = { from = "notify", stalled_after = "1m" }
[tasks.run]
command = ["true"]
"""
    folder = tmp_path / ("too-long-for-a-socket-" * 4)
    folder.mkdir()
    async with running(folder, config) as bench:
        waiting = await bench.enqueue("beats", 12)
        for id in await bench.enqueue("run", 10):
            assert (await bench.ended(id)).state is JobState.DONE
        for id in waiting:
            told = await bench.event("job_interrupted", id)
            assert str(told.data["by"]).startswith("cannot make it ready now: ")
        assert bench.engine.commands.trouble is None
