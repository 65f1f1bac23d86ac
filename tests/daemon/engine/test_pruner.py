from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from redrive.clock import SECOND
from redrive.config.sections import Keep
from redrived.engine.pruner import Pruner
from redrived.engine.timers import Timers
from redrived.processes.output import Outputs
from redrived.store import events, nodes, retention, tallies
from redrived.store.enqueue import NewJob, Order, enqueue
from redrived.store.leases import lease
from redrived.store.nodes import NodeBeat, NodeFacts
from redrived.store.picking import Room, TaskRules
from redrived.store.settle import Completed, complete
from redrived.store.store import Store
from support.clock import FakeClock

DAY = 86400.0


class Pruned:
    """A pruner on a real store, stepped by hand."""

    def __init__(self, store: Store, clock: FakeClock, folder: Path) -> None:
        self.store = store
        self.clock = clock
        self.folder = folder
        self.keep = Keep()
        self.leads = True
        self.pruner = Pruner(
            store,
            Timers(clock),
            clock,
            Outputs(folder),
            keep=lambda: self.keep,
            is_leader=lambda: self.leads,
        )

    async def finish(self, n: int) -> list[int]:
        jobs = [NewJob(task="work", queue="default")] * n
        await self.store.submit(enqueue, Order(jobs=jobs))
        room = Room(slots=n, tasks={"work": TaskRules()})
        leased = list((await self.store.submit(lease, room)).picked.jobs())
        now = self.clock.now()
        done = [Completed(j.id, j.lease, now, now, j.attempt, j.queue, j.task) for j in leased]
        await self.store.submit(complete, done)
        return [job.id for job in leased]

    async def jobs(self) -> int:
        return sum(tallies.by_state(await self.store.read(tallies.read)).values())

    def wrote(self, job: int) -> Path:
        path = self.folder / "outputs" / str(job // 1000) / f"{job}.1.out"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("output")
        os.utime(path, (self.clock.now() / SECOND,) * 2)
        return path


@pytest.fixture
async def pruned(tmp_path: Path) -> AsyncIterator[Pruned]:
    clock = FakeClock()
    store = Store(f"sqlite:///{tmp_path}/redrive.db", clock, "n1")
    await store.open()
    yield Pruned(store, clock, tmp_path)
    await store.close()


async def test_what_ended_long_ago_is_forgotten_chunk_by_chunk(
    pruned: Pruned, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "CHUNK", 2)
    ids = await pruned.finish(5)
    output = pruned.wrote(ids[0])
    pruned.clock.move(8 * DAY)
    young = await pruned.finish(1)
    groups = pruned.store.writer.groups
    assert await pruned.pruner.run_once() == 5
    assert pruned.store.writer.groups - groups > 3
    assert await pruned.jobs() == 1
    left = await pruned.store.read(events.after, 0, 100)
    assert {event.job for event in left} == set(young)
    assert not output.exists()
    assert await pruned.pruner.run_once() == 0


async def test_nothing_is_forgotten_that_the_config_keeps(pruned: Pruned) -> None:
    pruned.keep = replace(pruned.keep, done=None)
    await pruned.finish(1)
    pruned.clock.move(1000 * DAY)
    assert await pruned.pruner.run_once() == 0


async def test_a_shorter_time_counts_from_the_next_round_on(pruned: Pruned) -> None:
    await pruned.finish(1)
    pruned.clock.move(DAY)
    assert await pruned.pruner.run_once() == 0
    pruned.keep = replace(pruned.keep, done=3600.0)
    assert await pruned.pruner.run_once() == 1


class SettableClock(FakeClock):
    """One whose time of day can be set, which is not time that passes."""

    _was_set_by = 0.0

    def set_by(self, seconds: float) -> None:
        self._was_set_by += seconds
        self.move(seconds)

    def monotonic(self) -> float:
        return super().monotonic() - self._was_set_by


@pytest.mark.parametrize("is_put_right", [True, False])
async def test_a_clock_that_is_set_far_ahead_makes_nothing_old_for_an_hour(
    tmp_path: Path, is_put_right: bool
) -> None:
    clock = SettableClock()
    store = Store(f"sqlite:///{tmp_path}/redrive.db", clock, "n1")
    await store.open()
    pruned = Pruned(store, clock, tmp_path)
    await pruned.finish(1)
    clock.set_by(365 * DAY)
    for _ in range(3):
        assert await pruned.pruner.run_once() == 0
        clock.move(60)
    if is_put_right:
        clock.set_by(-365 * DAY)
        await pruned.pruner.run_once()
    clock.move(3600)
    assert await pruned.pruner.run_once() == (0 if is_put_right else 1)
    await store.close()


async def test_only_the_leader_forgets_what_all_share(pruned: Pruned) -> None:
    (job,) = await pruned.finish(1)
    output = pruned.wrote(job)
    pruned.leads = False
    pruned.clock.move(8 * DAY)
    assert await pruned.pruner.run_once() == 0
    assert await pruned.jobs() == 1
    assert not output.exists()  # the files are this node's own


@pytest.mark.parametrize("leads", [True, False])
async def test_the_leader_forgets_nodes_that_are_gone(pruned: Pruned, leads: bool) -> None:
    pruned.leads = leads
    earlier = Store(f"sqlite:///{pruned.folder}/redrive.db", pruned.clock, "an earlier name")
    await earlier.open()
    beat = NodeBeat(state="up", started_at=1, version="1", slots=8, facts=NodeFacts(pid=1))
    await earlier.submit(nodes.arrive, beat)
    await earlier.close()
    pruned.clock.move(8 * DAY)
    await pruned.pruner.run_once()
    left = [row.name for row in await pruned.store.read(nodes.rows)]
    assert left == ([] if leads else ["an earlier name"])


async def test_old_output_goes_before_its_job(pruned: Pruned) -> None:
    pruned.keep = replace(pruned.keep, outputs=DAY)
    (job,) = await pruned.finish(1)
    output = pruned.wrote(job)
    pruned.clock.move(2 * DAY)
    assert await pruned.pruner.run_once() == 0
    assert not output.exists()
    assert await pruned.jobs() == 1
