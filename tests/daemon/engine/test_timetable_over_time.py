"""What the timetable makes of outages and of clocks that are set."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from redrive.clock import SECOND
from redrive.models import Event
from redrive.protocol.commands import Act
from redrived.api import acting
from redrived.engine.engine import Engine
from redrived.store import events
from support.clock import FakeClock
from support.engine import BASE, TESTER, still

DAY = 86_400.0
EVERY_SECOND = '[tasks.t]\ncommand = ["true"]\n[schedules.s]\ntask = "t"\nevery = "1s"\n'


class Watch:
    """An engine of which only the timetable does anything, under a clock that tests move."""

    def __init__(self, engine: Engine, clock: FakeClock) -> None:
        self._engine = engine
        self._clock = clock

    async def look(self) -> None:
        await self._engine.timetable.run_once()

    async def tick(self, n: int, seconds: float = 1.0) -> None:
        for _ in range(n):
            self._clock.move(seconds)
            await self.look()

    async def end(self, job: int) -> None:
        await acting.act(self._engine, TESTER, Act(verb="cancel", ids=[str(job)]))

    async def told(self, kind: str) -> list[Event]:
        found = await self._engine.store.read(events.after, 0, 10_000)
        return [event for event in found if event.type == kind]

    async def fires(self) -> int:
        return len(await self.told("schedule_fired"))


@asynccontextmanager
async def watch(folder: Path, clock: FakeClock, config: str) -> AsyncIterator[Watch]:
    """The same folder again is the daemon's next start."""
    async with still(folder, BASE + config, clock) as engine:
        engine.timetable.use(engine.definitions.config)
        yield Watch(engine, clock)


@pytest.fixture
def clock() -> FakeClock:
    clock = FakeClock()
    clock.move(0.25)  # between two slots
    return clock


async def test_all_that_was_missed_is_made_up_for_one_after_the_other(
    tmp_path: Path, clock: FakeClock
) -> None:
    config = EVERY_SECOND + 'missed = "all"\n'
    async with watch(tmp_path, clock, config) as before:
        await before.look()
    clock.move(3)
    async with watch(tmp_path, clock, config) as after:
        for n in (1, 2, 3):
            await after.look()
            assert await after.fires() == n
            await after.end(n)
        await after.look()
        assert await after.fires() == 3
        assert await after.told("schedule_missed") == []
        await after.tick(1)
        await after.tick(1)  # while the one before runs: it is on time, and skipped
        assert await after.fires() == 4
        assert len(await after.told("schedule_missed")) == 1


@pytest.mark.parametrize(("missed", "fires"), [("skip", 1), ("once", 1), ("all", 100)])
async def test_three_days_away_from_a_schedule_of_every_second(
    tmp_path: Path, clock: FakeClock, missed: str, fires: int
) -> None:
    config = EVERY_SECOND + f'missed = "{missed}"\noverlap = "allow"\n'
    async with watch(tmp_path, clock, config) as before:
        await before.look()
        await before.tick(2)
        assert await before.fires() == 2
    clock.move(3 * DAY)
    async with watch(tmp_path, clock, config) as after:
        await after.look()
        assert await after.fires() == 2 + fires
        [missing] = await after.told("schedule_missed")
        assert missing.data["why"] == "no daemon was there"
        await after.look()
        assert await after.fires() == 2 + fires
        await after.tick(1)
        assert await after.fires() == 3 + fires


async def test_a_clock_set_back_by_an_hour_fires_no_slot_twice(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with watch(tmp_path, clock, EVERY_SECOND + 'overlap = "allow"\n') as timetable:
        await timetable.look()
        await timetable.tick(3)
        clock.move(-3600)
        await timetable.tick(3)
        assert await timetable.fires() == 3
        clock.move(3594)
        await timetable.tick(4)
        assert await timetable.fires() == 4


async def test_a_clock_that_was_a_day_ahead_is_no_longer_waited_for(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with watch(tmp_path, clock, EVERY_SECOND + 'overlap = "allow"\n') as timetable:
        await timetable.look()
        await timetable.tick(1)
        clock.move(-DAY)
        await timetable.look()
        await timetable.tick(2)
        assert await timetable.fires() == 3


async def test_a_clock_set_ahead_by_an_hour_misses_an_hour(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with watch(tmp_path, clock, EVERY_SECOND + 'overlap = "allow"\n') as timetable:
        await timetable.look()
        await timetable.tick(1)
        clock.move(3600)
        await timetable.look()
        assert await timetable.fires() == 2
        [missing] = await timetable.told("schedule_missed")
        assert missing.data["since"] < missing.data["until"]


async def test_a_new_or_changed_schedule_makes_up_for_nothing(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with watch(tmp_path, clock, EVERY_SECOND) as timetable:
        await timetable.look()
        assert await timetable.fires() == 0
    clock.move(DAY)
    async with watch(tmp_path, clock, EVERY_SECOND.replace("1s", "2s")) as timetable:
        await timetable.look()
        assert await timetable.fires() == 0


async def test_a_schedule_at_an_instant_fires_once_ever(tmp_path: Path, clock: FakeClock) -> None:
    config = EVERY_SECOND.replace('every = "1s"', "at = 2026-12-01T00:00:00Z")
    at = 1_796_083_200 * SECOND
    async with watch(tmp_path, clock, config) as timetable:
        await timetable.look()
        clock.move((at - clock.now()) / SECOND)
        await timetable.look()
        await timetable.tick(3, seconds=DAY)
        assert await timetable.fires() == 1
    async with watch(tmp_path, clock, config) as timetable:
        await timetable.look()
        assert await timetable.fires() == 1


async def test_a_schedule_that_cannot_start_anything_says_so(
    tmp_path: Path, clock: FakeClock
) -> None:
    keyed = 'concurrency_key = "{{ args.missing }}"\n[schedules'
    config = EVERY_SECOND.replace("[schedules", keyed)
    async with watch(tmp_path, clock, config) as timetable:
        await timetable.look()
        await timetable.tick(1)
        assert await timetable.fires() == 0
        [missing] = await timetable.told("schedule_missed")
        assert "missing" in missing.data["why"]
