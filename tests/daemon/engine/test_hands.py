"""Jobs in hand: leased ahead, not begun, and free to go back until they are."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Collection, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from redrive.lifecycle import JobState
from redrive.protocol.commands import Act, Enqueue, JobOrder
from redrived.api import acting
from redrived.engine import dispatcher
from redrived.engine.command_runner import (
    GIVE_BACK_AFTER,
    STARTED_AT_ONCE,
    CommandExecutor,
    Slot,
)
from redrived.engine.definitions import COMMANDS
from redrived.store.leases import Leased, lease
from redrived.store.picking import Berth, Room
from redrived.store.unit import Unit
from support.engine import TESTER, WITHIN, Bench, running

TASKS = """
[tasks.tiny]
command = "echo $REDRIVE_ARG_N >> ran"
[tasks.block]
command = "touch blocking; while [ ! -e go ]; do sleep 0.02; done"
[tasks.broken]
command = ["echo", "{{ args.missing }}"]
"""
ONE_SLOT = """
[daemon]
name = "n1"
state_dir = "./state"
runtime_dir = "./run"
concurrency = 1
"""


def taken_for_tiny(bench: Bench) -> None:
    """As after some of each have run; how long they really take depends on the machine."""
    for task in ("tiny", "block", "broken"):
        bench.engine.pace.note(task, 1, 0.001)


async def test_commands_leased_ahead_run_in_their_order_and_are_logged_whole(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, TASKS, ONE_SLOT) as bench:
        taken_for_tiny(bench)
        ids = [(await bench.enqueue("tiny", n=n))[0] for n in range(30)]
        for id in ids:
            assert (await bench.ended(id)).state is JobState.DONE
            job = await bench.job(id)
            assert job.attempts == 1
            assert job.started_at is not None
            assert await bench.told(id) == ["step_started", "action_started", "action_completed"]

        assert (tmp_path / "ran").read_text().split() == [str(n) for n in range(30)]


async def test_hands_grow_with_what_jobs_are_seen_to_take(tmp_path: Path) -> None:
    async with running(tmp_path, '[tasks.empty]\npython = "builtins:dict"') as bench:

        def hand() -> int:
            return bench.engine.dispatcher.room().tasks["empty"].hand

        assert hand() == 1
        async with asyncio.timeout(WITHIN):
            while hand() < 5:
                [id] = await bench.enqueue("empty")
                await bench.ended(id)


LIMITED = {
    "none": ('[tasks.tiny]\ncommand = "true"', range(2, 31)),
    "task concurrency": ('[tasks.tiny]\ncommand = "true"\nconcurrency = 50', [1]),
    "task rate": ('[tasks.tiny]\ncommand = "true"\nrate = "1000/s"', [1]),
    "key": ('[tasks.tiny]\ncommand = "true"\nconcurrency_key = "{{ args.n }}"', [1]),
    "queue concurrency": (
        '[tasks.tiny]\ncommand = "true"\n[queues.default]\nconcurrency = 50',
        [1],
    ),
    "queue rate": ('[tasks.tiny]\ncommand = "true"\n[queues.default]\nrate = "1000/s"', [1]),
}


@pytest.mark.parametrize(("config", "sizes"), LIMITED.values(), ids=LIMITED.keys())
async def test_what_has_a_limit_or_a_rate_gets_hands_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: str, sizes: Collection[int]
) -> None:
    hands: list[int] = []

    def noted(unit: Unit, rooms: Sequence[Room]) -> list[Leased]:
        answers = lease(unit, rooms)
        hands.extend(len(berth.jobs) for each in answers for berth in each.picked.berths)
        return answers

    monkeypatch.setattr(dispatcher, "lease", noted)
    async with running(tmp_path, config) as bench:
        taken_for_tiny(bench)
        orders = [JobOrder(args={"n": n}) for n in range(30)]
        for id in await bench.order(Enqueue(task="tiny", orders=orders)):
            await bench.ended(id)

    assert sum(hands) >= 30
    assert max(hands) in sizes


async def test_a_command_that_is_over_waits_for_no_garbage_collector(tmp_path: Path) -> None:
    async with running(tmp_path, TASKS, ONE_SLOT) as bench:
        gc.disable()
        try:
            [id] = await bench.enqueue("block")
            await bench.event("action_started", id)
            while (attempt := bench.engine.attempts.get(id)) is None:
                await asyncio.sleep(0)
            assert isinstance(attempt.executor, CommandExecutor)
            assert attempt.executor.run is not None
            run = weakref.ref(attempt.executor.run)
            (tmp_path / "go").touch()
            await bench.ended(id)
            assert run() is None
        finally:
            gc.enable()


async def test_slots_share_a_lease_once_one_of_them_runs_low(tmp_path: Path) -> None:
    async with running(tmp_path, TASKS, ONE_SLOT) as bench:
        taken_for_tiny(bench)
        [id] = await bench.enqueue("tiny", n=1)
        while (attempt := bench.engine.attempts.get(id)) is None:
            await asyncio.sleep(0)
        await bench.ended(id)
        job = attempt.job._replace(task="broken")  # that none has run of
        commands = bench.engine.commands
        low, half, _ = slots = [Slot() for _ in range(3)]
        for slot, count in zip(slots, (10, 30, 60), strict=True):
            slot.waiting.extend([job] * count)
            slot.refill_at = 10
        commands._slots.update(slots)
        try:
            assert [berth.worker for berth in commands.berths(free=0)] == [low, half]
            low.waiting.append(job)
            assert commands.berths(free=0) == []
        finally:
            commands._slots.clear()


async def test_what_waits_behind_a_command_that_turns_out_long_goes_back(tmp_path: Path) -> None:
    async with running(tmp_path, TASKS, ONE_SLOT) as bench:
        taken_for_tiny(bench)
        [first] = await bench.enqueue("block")
        ids = await bench.enqueue("tiny", 3, n=1)
        await bench.event("action_started", first)
        async with asyncio.timeout(WITHIN):
            while not (attempt := bench.engine.attempts.get(first)):
                await asyncio.sleep(0)
            while bench.engine.clock.monotonic() < attempt.since + 2 * GIVE_BACK_AFTER:
                await asyncio.sleep(0.01)
            for id in ids:
                while (await bench.job(id)).state is not JobState.QUEUED:
                    await asyncio.sleep(0.01)
        for id in ids:
            job = await bench.job(id)
            assert (job.state, job.attempts) == (JobState.QUEUED, 0)
            assert await bench.told(id) == ["step_started"]
        (tmp_path / "go").touch()
        for id in ids:
            assert (await bench.ended(id)).attempts == 1


async def test_what_was_leased_to_wait_behind_a_command_that_is_long_by_now_goes_back(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, TASKS, ONE_SLOT) as bench:
        taken_for_tiny(bench)
        room = bench.engine.dispatcher.room()
        await bench.enqueue("block")
        commands = bench.engine.commands
        async with asyncio.timeout(WITHIN):
            while not (slots := [slot for slot in commands._slots if slot.is_long]):
                await asyncio.sleep(0.005)
        [id] = await bench.enqueue("tiny", n=1)
        room.slots = 0
        room.berths = {COMMANDS: [Berth(slots[0], empty=False)]}
        leased = await bench.engine.store.submit(lease, room)
        commands.hand(leased.picked.berths[0], False, leased.at)
        async with asyncio.timeout(WITHIN):
            while (await bench.job(id)).state is not JobState.QUEUED:
                await asyncio.sleep(0.01)
        (tmp_path / "go").touch()
        assert (await bench.ended(id)).attempts == 1


async def test_a_command_cancelled_in_hand_never_runs(tmp_path: Path) -> None:
    async with running(tmp_path, TASKS, ONE_SLOT) as bench:
        taken_for_tiny(bench)
        [first] = await bench.enqueue("block")
        [behind] = await bench.enqueue("tiny", n=1)
        await bench.event("action_started", first)
        await acting.act(bench.engine, TESTER, Act(verb="cancel", ids=[str(behind)]))
        (tmp_path / "go").touch()
        await bench.ended(first)

        assert (await bench.ended(behind)).state is JobState.CANCELLED
        assert not (tmp_path / "ran").exists()


async def test_a_command_whose_arguments_fit_nothing_is_dead_wherever_it_waited(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, TASKS, ONE_SLOT) as bench:
        taken_for_tiny(bench)
        ids = await bench.enqueue("broken", 4)
        for id in ids:
            assert (await bench.ended(id)).reason == "permanent"
            assert await bench.told(id) == [
                "step_started",
                "action_started",
                "action_error",
                "step_retry_exhausted",
            ]


async def test_a_drain_leaves_nothing_leased_behind(tmp_path: Path) -> None:
    async with running(tmp_path, TASKS, ONE_SLOT) as bench:
        taken_for_tiny(bench)
        ids = await bench.enqueue("tiny", 50, n=1)
        await bench.event("action_completed")
        bench.engine.drain(stop=False)
        await bench.until(lambda: bench.engine.is_idle, "an idle engine")
    async with running(tmp_path, TASKS, ONE_SLOT) as bench:
        for id in ids:
            while (await bench.job(id)).state is not JobState.DONE:
                await bench.event("action_completed", id)
            assert "action_lost" not in await bench.told(id)


async def test_many_commands_are_started_in_portions_with_turns_for_others(tmp_path: Path) -> None:
    count = 8 * STARTED_AT_ONCE
    config = ONE_SLOT.replace("concurrency = 1", f"concurrency = {count}")
    async with running(tmp_path, '[tasks.wait]\ncommand = ["sleep", "300"]\n', config) as bench:
        loop = asyncio.get_running_loop()
        started: list[int] = []  # at each turn of the loop

        def turn() -> None:
            started.append(len(bench.engine.attempts))
            if started[-1] < count:
                loop.call_soon(turn)

        turn()
        ids = await bench.enqueue("wait", count)
        for id in ids:
            await bench.event("action_started", id)
        while started[-1] < count:
            await asyncio.sleep(0)

        assert max(b - a for a, b in pairwise(started)) <= STARTED_AT_ONCE
        await acting.act(bench.engine, TESTER, Act(verb="kill", ids=[str(id) for id in ids]))
        for id in ids:
            assert (await bench.ended(id)).state is JobState.CANCELLED
