"""Schedules on a whole engine."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from redrive.config import Config, load
from redrive.errors import NotFound
from redrive.protocol import commands, queries
from redrive.protocol.rows import ScheduleRow
from redrived.api import pausing, schedules
from redrived.store.schedules import standings
from support.engine import TESTER, Bench, running
from support.engines import an_engine

TASKS = """
[tasks.say]
command = ["true"]
[tasks.hold]
command = ["sleep", "600"]
grace = "0s"
[pipelines.p]
steps = [ { name = "only", task = "say" } ]
"""


async def rows(bench: Bench) -> dict[str, ScheduleRow]:
    page = await schedules.list_schedules(bench.engine, TESTER, queries.ListSchedules(next=3))
    return {row.name: row for row in page.schedules}


async def test_a_schedule_fires_at_its_slots(tmp_path: Path) -> None:
    config = TASKS + '[schedules.s]\ntask = "say"\nevery = "200ms"\n'
    async with running(tmp_path, config) as bench:
        first = await bench.event("schedule_fired")
        second = await bench.event("schedule_fired", n=2)
        assert first.data["slot"] < second.data["slot"]
        job = await bench.ended(first.data["job"])
        assert (job.task, job.mode) == ("say", "auto")
        row = (await rows(bench))["s"]
        assert (row.what, row.words, len(row.next)) == ("task say", "every 200ms", 3)
        assert row.last[-1].outcome == "fired"


async def test_a_schedule_may_start_a_pipeline_in_a_batch(tmp_path: Path) -> None:
    config = (
        TASKS
        + '[schedules.s]\npipeline = "p"\nevery = "1h"\nbatch = "b-{{ date }}-{{ schedule }}-{{ slot }}"\n'
    )
    async with running(tmp_path, config) as bench:
        done = await schedules.trigger(bench.engine, TESTER, commands.Trigger(schedule="s"))
        assert done.text == "schedule s has started r1"
        ended = await bench.event("execution_completed")
        assert ended.run == "r1"
        assert re.fullmatch(r"b-20[0-9-]{8}-s-20[0-9-]{8}T.*Z", ended.data["batch"])
        told = await bench.event("schedule_fired")
        assert (told.data["run"], told.data["by"]) == ("r1", "tester")


PLAYBOOK = "workflow: [{step: a, type: shell, command: 'true'}]"


async def test_a_playbook_can_be_scheduled_before_it_is_registered(tmp_path: Path) -> None:
    config = TASKS + '[schedules.s]\npipeline = "report"\nevery = "200ms"\n'
    async with running(tmp_path, config) as bench:
        missed = await bench.event("schedule_missed")
        assert missed.data["why"].startswith("there is no pipeline 'report'")
        assert (await rows(bench))["s"].what == "pipeline report, not registered yet"
        await bench.engine.pipelines.add(commands.AddPipeline(source=PLAYBOOK, name="report"), "me")
        ended = await bench.event("execution_completed")
        assert ended.data["pipeline"] == "report"
        assert (await rows(bench))["s"].what == "pipeline report"


async def test_a_slot_is_skipped_while_the_one_before_still_runs(tmp_path: Path) -> None:
    config = TASKS + '[schedules.s]\ntask = "hold"\nevery = "200ms"\noverlap = "skip"\n'
    async with running(tmp_path, config) as bench:
        missed = await bench.event("schedule_missed")
        assert missed.data["why"] == "job 1 still runs"
        assert sum(each.type == "schedule_fired" for each in bench.heard) == 1


async def test_a_slot_waits_for_the_one_before_and_then_fires(tmp_path: Path) -> None:
    once = TASKS + '[schedules.s]\ntask = "hold"\nevery = "200ms"\noverlap = "queue"\n'
    async with running(tmp_path, once) as bench:
        await bench.event("schedule_fired")

        async def queued() -> bool:
            last = (await rows(bench))["s"].last
            return any(each.outcome == "queued" for each in last)

        while not await queued():
            await bench.engine.clock.sleep(0.02)
        from redrived.api import acting

        await acting.act(bench.engine, TESTER, commands.Act(verb="kill", ids=["1"]))
        second = await bench.event("schedule_fired", n=2)
        assert second.data["job"] == 2


async def test_a_paused_schedule_does_not_fire_and_catches_up_nothing(tmp_path: Path) -> None:
    config = TASKS + '[schedules.s]\ntask = "say"\nevery = "100ms"\nmissed = "all"\n'
    async with running(tmp_path, config) as bench:
        await bench.event("schedule_fired")
        await pausing.pause(bench.engine, TESTER, commands.PauseIt(name="schedule:s"))
        paused_at = bench.engine.clock.now()
        await bench.engine.clock.sleep(0.5)
        await pausing.resume(bench.engine, TESTER, commands.ResumeIt(name="schedule:s"))
        resumed_at = bench.engine.clock.now()
        n = sum(each.type == "schedule_fired" for each in bench.heard)
        await bench.event("schedule_fired", n=n + 1)
        last = (await rows(bench))["s"].last
        assert not [each for each in last if paused_at + 150_000 < each.slot < resumed_at - 150_000]


async def test_a_paused_schedule_says_who_paused_it_when_and_why(tmp_path: Path) -> None:
    config = TASKS + '[schedules.s]\ntask = "say"\nevery = "1h"\n'
    async with running(tmp_path, config) as bench:
        before = bench.engine.clock.now()
        wish = commands.PauseIt(name="schedule:s", why="vendor down")
        await pausing.pause(bench.engine, TESTER, wish)
        row = (await rows(bench))["s"]
        assert (row.paused, row.paused_by, row.paused_why) == (True, TESTER.who, "vendor down")
        assert before <= (row.paused_at or 0) <= bench.engine.clock.now()


async def test_an_unknown_schedule_is_named_with_the_nearest(tmp_path: Path) -> None:
    async with running(
        tmp_path, TASKS + '[schedules.night]\ntask = "say"\nevery = "1h"\n'
    ) as bench:
        with pytest.raises(NotFound, match="did you mean 'night'"):
            await schedules.trigger(bench.engine, TESTER, commands.Trigger(schedule="nigth"))


async def test_schedules_that_a_reload_brings_while_others_are_taken_up_fire(
    tmp_path: Path,
) -> None:
    async with an_engine(tmp_path, TASKS + '[schedules.a]\ntask = "say"\nevery = "1h"\n') as engine:
        timetable = engine.timetable
        timetable.use(engine.definitions.config)
        file = tmp_path / "config.toml"
        file.write_text(TASKS + '[schedules.b]\ntask = "say"\nevery = "1h"\n')
        new = load(file, {}).config
        for turn in range(50):  # of the loop, after which they come
            timetable.use(engine.definitions.config)
            round_ = asyncio.create_task(timetable.run_once())
            for _ in range(turn):
                await asyncio.sleep(0)
            timetable.use(new)
            rows = asyncio.create_task(timetable.rows(1))
            await round_
            await timetable.run_once()
            assert set(await engine.store.read(standings)) == {"b"}
            assert [row.name for row in await rows] == ["b"]


async def test_a_list_of_schedules_survives_a_reload_that_drops_them(tmp_path: Path) -> None:
    async with an_engine(tmp_path, TASKS + '[schedules.a]\ntask = "say"\nevery = "1h"\n') as engine:
        engine.timetable.use(engine.definitions.config)
        rows = asyncio.create_task(engine.timetable.rows(1))
        await asyncio.sleep(0)
        engine.timetable.use(Config())
        assert [row.name for row in await rows] == ["a"]
