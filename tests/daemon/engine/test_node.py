from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from redrive.clock import SECOND, SystemClock
from redrive.config.sections import Config, Task
from redrived.engine.attempt import Attempt
from redrived.engine.engine import Engine
from redrived.engine.leftovers import Leftover
from redrived.engine.node import Node
from redrived.engine.timers import Timers
from redrived.notify import Notifier
from redrived.processes.identity import Identity
from redrived.store import events, jobs, nodes
from redrived.store.begin import Begun, begin
from redrived.store.enqueue import NewJob, Order, enqueue
from redrived.store.leases import lease
from redrived.store.picking import InHand, Room, TaskRules
from redrived.store.store import Store
from redrived.store.unit import Unit
from support.clock import FakeClock
from support.databases import postgresql_url
from support.engines import an_engine

CONFIG = Config(tasks={"work": Task(command=["true"], retry=3)})


class Machine:
    """An engine that dispatches nothing by itself, and its node."""

    def __init__(self, url: str, name: str, folder: Path, clock: FakeClock) -> None:
        self.clock = clock
        self.store = Store(url, clock, name)
        self.name = name
        self.folder = folder

    async def open(self) -> None:
        await self.store.open()
        self.timers = Timers(self.clock)
        self.engine = Engine(
            CONFIG,
            self.store,
            self.clock,
            self.timers,
            node=self.name,
            epoch="e",
            state_dir=self.folder,
            runtime_dir=self.folder,
            drain=lambda: None,
        )
        self.node = Node(self.engine, Notifier())
        await self.store.submit(nodes.arrive, self.node._beat())
        await self.engine.leadership.renew()

    async def beat_for(self, seconds: int) -> None:
        for _ in range(seconds // 2):
            self.clock.move(2)
            await self.engine.leadership.renew()
            await self.node.beat_once()

    async def lease_one(self) -> InHand:
        await self.store.submit(
            enqueue, Order(jobs=[NewJob(task="work", queue="default", max_attempts=3)])
        )
        leased = await self.store.submit(lease, Room(slots=1, tasks={"work": TaskRules()}))
        (job,) = leased.picked.jobs()
        return job

    async def told(self) -> list[str]:
        return [event.type for event in await self.store.read(events.after, 0, 100)]


def fall_silent(unit: Unit, names: Sequence[str]) -> list[None]:
    for name in names:
        unit.execute(
            "UPDATE nodes SET beat_at = beat_at - :long WHERE name = :name",
            name=name,
            long=60 * SECOND,
        )
    return [None] * len(names)


def spoil(unit: Unit, ids: Sequence[int]) -> list[None]:
    for id in ids:
        unit.execute("UPDATE jobs SET args = 'not json' WHERE id = :id", id=id)
    return [None] * len(ids)


@pytest.fixture
async def two(tmp_path: Path) -> AsyncIterator[tuple[Machine, Machine]]:
    url = postgresql_url()
    async with AsyncExitStack() as stack:
        machines = [Machine(url, name, tmp_path, FakeClock()) for name in ("one", "two")]
        for machine in machines:
            await machine.open()
            stack.push_async_callback(machine.store.close)
        yield machines[0], machines[1]


async def test_what_a_lost_node_had_is_tried_again(two: tuple[Machine, Machine]) -> None:
    one, other = two
    job = await other.lease_one()
    await one.store.submit(fall_silent, "two")
    await one.beat_for(20)
    await one.store.submit(fall_silent, "nobody")  # what was submitted before has landed
    found = await one.store.read(jobs.get, job.id)
    assert found is not None
    assert (found.state, found.attempts, found.budgets and found.budgets.lost) == ("retry", 1, 1)
    assert (await one.told()).count("action_lost") == 1
    assert "node_lost" in await one.told()


async def test_a_row_of_a_lost_node_that_cannot_be_read_keeps_no_other_from_being_tried_again(
    two: tuple[Machine, Machine],
) -> None:
    one, other = two
    bad, good = await other.lease_one(), await other.lease_one()
    await one.store.submit(spoil, bad.id)
    await one.store.submit(fall_silent, "two")
    await one.beat_for(20)
    await one.store.submit(fall_silent, "nobody")  # what was submitted before has landed
    found = await one.store.read(jobs.get_many, [bad.id, good.id])
    assert [job.state for job in found] == ["dead", "retry"]
    assert found[0].error is not None
    assert found[0].error.error_type == "unreadable_row"


async def test_a_lost_attempt_is_settled_once(two: tuple[Machine, Machine]) -> None:
    one, other = two
    await other.lease_one()
    await one.store.submit(fall_silent, "two")
    await one.beat_for(40)
    assert (await one.told()).count("step_retry") == 1
    assert "late_result" not in await one.told()


async def test_who_was_away_itself_accuses_nobody(two: tuple[Machine, Machine]) -> None:
    one, _ = two
    await one.beat_for(20)
    one.clock.move(60)
    await one.store.submit(fall_silent, "two")
    await one.beat_for(10)
    assert "node_lost" not in await one.told()


async def test_only_the_leader_accuses(two: tuple[Machine, Machine]) -> None:
    one, other = two
    await one.store.submit(fall_silent, "one")
    await other.beat_for(20)
    assert "node_lost" not in await one.told()


async def test_late_words_of_a_lost_node_change_nothing(two: tuple[Machine, Machine]) -> None:
    one, other = two
    job = await other.lease_one()
    await one.store.submit(fall_silent, "two")
    await one.beat_for(20)
    await other.store.submit(begin, Begun(job.id, job.lease, 1, job.attempt, None))
    found = await one.store.read(jobs.get, job.id)
    assert found is not None
    assert found.state == "retry"


async def test_a_lease_that_was_given_away_is_told_of_once(
    two: tuple[Machine, Machine], caplog: pytest.LogCaptureFixture
) -> None:
    """Also where SIGKILL does not end what ran by it."""
    one, other = two
    job = await other.lease_one()
    stuck = Leftover([identity for identity in [Identity.of(os.getpid())] if identity])
    other.engine.attempts.add(Attempt(job, other.engine.definitions.tasks["work"], stuck, 0, 0.0))
    await one.store.submit(fall_silent, "two")
    await one.beat_for(20)
    for _ in range(3):
        await other.engine.peers.look_at_leases()
    assert caplog.text.count("this node was taken for lost; 1 attempts are ended") == 1


async def test_a_node_beats_from_its_arrival_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an earlier daemon left may take long to end, and nobody is to take this one for lost."""
    monkeypatch.setattr("redrived.engine.node.BEAT", 0.05)
    async with an_engine(tmp_path, clock=SystemClock()) as engine:
        engine.timers.start()
        try:
            await Node(engine, Notifier()).arrive()
            [arrived] = await engine.store.read(nodes.rows)
            async with asyncio.timeout(20):
                while (await engine.store.read(nodes.rows))[0].beat_at == arrived.beat_at:
                    await asyncio.sleep(0.01)
        finally:
            await engine.timers.stop()


async def test_a_node_keeps_its_word_and_takes_another_for_an_empty_one(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        for spoilt in (None, "", "\n"):
            if spoilt is not None:
                (tmp_path / "node.id").write_text(spoilt)
            first, again = (Node(engine, Notifier())._beat().facts.home for _ in range(2))
            assert first == again != ""
