"""Redrives: chosen once, a canary first, at a pace, stopped, undone, gone on with."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection

from redrive.errors import UsageProblem, WrongState
from redrive.lifecycle import JobState
from redrive.protocol.commands import (
    Act,
    ControlRedrive,
    PauseIt,
    ResumeIt,
    RunOrder,
    Start,
    Undo,
)
from redrive.protocol.queries import ListRedrives
from redrive.protocol.rows import RedriveRow
from redrived.api import acting, pausing, redrives, runs
from redrived.engine.engine import Engine
from redrived.store import redrives as stored
from redrived.store.enqueue import NewJob, Order, enqueue
from redrived.store.redrives import Change, active, change
from support.clock import FakeClock
from support.databases import postgresql_url
from support.engine import TESTER, WITHIN, Bench, running
from support.engines import an_engine, told

CONFIG = """
[tasks.check]
command = "test -e up"
"""


RUNS = """
[tasks.broom]
command = "test -e broom && echo swept >> swept"

[pipelines.checks]
steps = [{ name = "check", task = "check", clear = "broom" }]
"""


async def some_dead(bench: Bench, n: int) -> list[int]:
    ids = await bench.enqueue("check", n)
    for id in ids:
        assert (await bench.ended(id)).state is JobState.DEAD
    bench.heard.clear()
    return ids


async def some_dead_in_runs(bench: Bench, n: int) -> list[int]:
    request = Start(pipeline="checks", orders=[RunOrder()] * n)
    await runs.start_runs(bench.engine, TESTER, request)
    await bench.event("execution_failed", n=n)
    dead = [e.job for e in bench.heard if e.type == "step_failed_terminal" and e.job is not None]
    bench.heard.clear()
    return dead


async def row(bench: Bench) -> RedriveRow:
    page = await redrives.list_redrives(bench.engine, TESTER, ListRedrives())
    return page.redrives[0]


async def test_a_set_is_answered_for_one_by_one_and_counted(tmp_path: Path) -> None:
    async with running(tmp_path, CONFIG) as bench:
        ids = await some_dead(bench, 3)
        (tmp_path / "up").touch()
        acted = await acting.act(bench.engine, TESTER, Act(verb="requeue", where="state:dead"))

        assert sorted(int(each.id) for each in acted.outcomes if each.done) == ids
        await bench.event("redrive_completed")
        found = await row(bench)
        assert (found.state, found.total, found.requeued, found.succeeded, found.failed) == (
            "done",
            3,
            3,
            3,
            0,
        )


async def test_a_set_of_nothing_begins_no_redrive(tmp_path: Path) -> None:
    async with running(tmp_path, CONFIG) as bench:
        acted = await acting.act(bench.engine, TESTER, Act(verb="requeue", where="queue:nope"))
        assert (acted.redrive, acted.outcomes, acted.total) == (None, [], 0)
        page = await redrives.list_redrives(bench.engine, TESTER, ListRedrives())
        assert page.redrives == []


async def test_a_canary_that_lives_lets_the_others_follow(tmp_path: Path) -> None:
    async with running(tmp_path, CONFIG) as bench:
        await some_dead(bench, 4)
        (tmp_path / "up").touch()
        wish = Act(verb="requeue", where="state:dead", canary=1, reason="db2 is back")
        acted = await acting.act(bench.engine, TESTER, wish)

        assert (acted.outcomes, acted.total) == ([], 4)
        await bench.event("redrive_canary_passed")
        await bench.event("redrive_completed")
        assert (await row(bench)).succeeded == 4
        requeued = [event for event in bench.heard if event.type == "job_requeued"]
        assert all(event.data["reason"] == "db2 is back" for event in requeued)


async def test_a_canary_whose_data_is_cleared_first_has_lived_when_it_ends(tmp_path: Path) -> None:
    async with running(tmp_path, CONFIG + RUNS) as bench:
        await some_dead_in_runs(bench, 3)
        for name in ("up", "broom"):
            (tmp_path / name).touch()
        await acting.act(bench.engine, TESTER, Act(verb="requeue", where="state:dead", canary=1))

        await bench.event("redrive_completed")
        passed = await bench.event("redrive_canary_passed")
        before = [event for event in bench.heard if event.seq < passed.seq]
        ended = [event.job for event in before if event.type == "action_completed"]
        assert len(ended) == 2  # the clearing, and the canary
        assert (await row(bench)).succeeded == 3
        assert (tmp_path / "swept").read_text() == "swept\n" * 3


async def test_a_canary_whose_data_cannot_be_cleared_stops_the_redrive(tmp_path: Path) -> None:
    async with running(tmp_path, CONFIG + RUNS) as bench:
        dead = await some_dead_in_runs(bench, 2)
        (tmp_path / "up").touch()
        await acting.act(bench.engine, TESTER, Act(verb="requeue", where="state:dead", canary=1))

        stopped = await bench.event("redrive_stopped")
        assert stopped.data["why"] == "the canary failed: 1 of 1"
        assert [(await bench.job(id)).life for id in dead] == [1, 1]


async def test_a_job_that_is_refused_is_no_canary(tmp_path: Path) -> None:
    async with running(tmp_path, CONFIG + "[tasks.never]\ncommand = 'exit 64'\n") as bench:
        (refused,) = await bench.enqueue("never", 1)
        await bench.ended(refused)
        dead = await some_dead(bench, 3)
        wish = Act(verb="requeue", where="state:dead", canary=1)
        await acting.act(bench.engine, TESTER, wish)

        stopped = await bench.event("redrive_stopped")
        assert stopped.data["why"] == "the canary failed: 1 of 1"
        assert [(await bench.job(id)).life for id in (refused, *dead)] == [1, 2, 1, 1]


async def test_a_canary_of_which_nothing_can_be_requeued_stops_and_says_why(tmp_path: Path) -> None:
    async with running(tmp_path, CONFIG + "[tasks.never]\ncommand = 'exit 64'\n") as bench:
        ids = await bench.enqueue("never", 2)
        for id in ids:
            await bench.ended(id)
        wish = Act(verb="requeue", where="state:dead", canary=1)
        await acting.act(bench.engine, TESTER, wish)

        stopped = await bench.event("redrive_stopped")
        skips = {"the failure is permanent: the same attempt would fail again": 2}
        assert stopped.data["why"] == "none of its jobs could be requeued"
        assert stopped.data["skips"] == skips
        found = await row(bench)
        assert (found.state, found.skipped, found.skips) == ("stopped", 2, skips)
        assert "redrive_canary_passed" not in [event.type for event in bench.heard]


async def test_a_redrive_that_is_over_says_what_it_skipped_and_why(tmp_path: Path) -> None:
    async with running(tmp_path, CONFIG + "[tasks.never]\ncommand = 'exit 64'\n") as bench:
        (refused,) = await bench.enqueue("never", 1)
        await bench.ended(refused)
        await some_dead(bench, 1)
        await acting.act(bench.engine, TESTER, Act(verb="requeue", where="state:dead"))

        over = await bench.event("redrive_completed")
        assert over.data["skips"] == (await row(bench)).skips
        assert list(over.data["skips"].values()) == [1]


async def test_a_redrive_that_was_paused_still_waits_for_its_canary(tmp_path: Path) -> None:
    async with running(tmp_path, CONFIG) as bench:
        canary, *others = await some_dead(bench, 3)
        await pausing.pause(bench.engine, TESTER, PauseIt(name="task:check"))
        wish = Act(verb="requeue", where="state:dead", canary=1)
        id = (await acting.act(bench.engine, TESTER, wish)).redrive
        assert id is not None
        await bench.event("job_requeued", job=canary)
        paused = await redrives.control(
            bench.engine, TESTER, ControlRedrive(redrive=id, verb="pause")
        )
        resumed = await redrives.control(
            bench.engine, TESTER, ControlRedrive(redrive=id, verb="resume")
        )
        assert (paused.text, resumed.text) == ("redrive 1 is paused", "redrive 1 goes on")
        assert (await row(bench)).state == "canary"
        await pausing.resume(bench.engine, TESTER, ResumeIt(name="task:check"))

        await bench.event("redrive_stopped")
        assert [(await bench.job(other)).life for other in others] == [1, 1]


async def test_later_arrivals_are_not_included(tmp_path: Path) -> None:
    async with running(tmp_path, CONFIG) as bench:
        first = await some_dead(bench, 2)
        wish = Act(verb="requeue", where="state:dead", pace="1/h")
        await acting.act(bench.engine, TESTER, wish)
        later = await some_dead(bench, 1)

        assert (await row(bench)).total == len(first)
        assert (await bench.job(later[0])).life == 1


async def test_it_stops_when_too_many_fail_again(tmp_path: Path) -> None:
    async with running(tmp_path, CONFIG) as bench:
        await some_dead(bench, 8)
        wish = Act(verb="requeue", where="state:dead", pace="20/s", stop_at=0.5)
        await acting.act(bench.engine, TESTER, wish)

        stopped = await bench.event("redrive_stopped")
        assert stopped.data["why"].endswith("failed again, the limit is 50%")
        found = await row(bench)
        assert found.state == "stopped"
        assert found.requeued < 8


async def test_without_a_pace_too_it_stops_before_all_have_failed_again(tmp_path: Path) -> None:
    async with running(tmp_path, CONFIG) as bench:
        await some_dead(bench, 30)
        await acting.act(bench.engine, TESTER, Act(verb="requeue", where="state:dead", stop_at=0.2))

        await bench.event("redrive_stopped")
        assert 5 <= (await row(bench)).requeued <= 10


async def test_without_a_pace_all_follow_while_few_fail(tmp_path: Path) -> None:
    async with running(tmp_path, CONFIG) as bench:
        await some_dead(bench, 30)
        (tmp_path / "up").touch()
        await acting.act(bench.engine, TESTER, Act(verb="requeue", where="state:dead", stop_at=0.2))

        await bench.event("redrive_completed")
        assert (await row(bench)).succeeded == 30


async def test_an_undo_puts_back_what_nobody_has_begun(tmp_path: Path) -> None:
    async with running(tmp_path, CONFIG) as bench:
        ids = await some_dead(bench, 3)
        await pausing.pause(bench.engine, TESTER, PauseIt(name="task:check"))
        acted = await acting.act(bench.engine, TESTER, Act(verb="requeue", where="state:dead"))
        assert acted.redrive is not None
        assert {(await bench.job(id)).state for id in ids} == {JobState.QUEUED}

        done = await redrives.undo(bench.engine, TESTER, Undo(redrive=acted.redrive))
        assert done.data["undone"] == 3
        for id in ids:
            job = await bench.job(id)
            assert (job.state, job.reason, job.attempts, job.life) == (
                JobState.DEAD,
                "exhausted",
                1,
                1,
            )
            assert (await bench.told(id))[-1] == "redrive_undone"
        late = Change(redrive=acted.redrive, state="watching", event="redrive_requeued")
        assert not await bench.engine.store.submit(change, late)
        assert (await row(bench)).state == "undone"


async def test_an_undo_of_which_all_so_far_has_run_says_that_it_ends(tmp_path: Path) -> None:
    async with running(tmp_path, CONFIG) as bench:
        await some_dead(bench, 3)
        (tmp_path / "up").touch()
        wish = Act(verb="requeue", where="state:dead", pace="1/h")
        acted = await acting.act(bench.engine, TESTER, wish)
        assert acted.redrive is not None
        await bench.event("action_completed")

        done = await redrives.undo(bench.engine, TESTER, Undo(redrive=acted.redrive))
        assert done.text == "redrive 1 requeues no more; what it requeued has begun or ended"
        assert done.data["undone"] == 0


async def test_an_undo_that_comes_too_late_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    async with running(tmp_path, CONFIG) as bench:
        await some_dead(bench, 2)
        (tmp_path / "up").touch()
        acted = await acting.act(bench.engine, TESTER, Act(verb="requeue", where="state:dead"))
        assert acted.redrive is not None
        await bench.event("redrive_completed")

        with pytest.raises(WrongState, match="nothing to take back"):
            await redrives.undo(bench.engine, TESTER, Undo(redrive=acted.redrive))
        assert (await row(bench)).state == "done"


async def requeued(engine: Engine) -> int:
    """How many there are once all that may go now has gone."""
    while await engine.redrives.run_once():
        pass
    [row] = await engine.store.read(active)
    return row.requeued


@asynccontextmanager
async def two_a_second(folder: Path, clock: FakeClock) -> AsyncIterator[Engine]:
    """A redrive of 100 jobs of which the first has been requeued; its steps are taken by hand."""
    async with an_engine(folder, CONFIG, clock=clock) as engine:
        jobs = [NewJob(task="check", queue="default") for _ in range(100)]
        await engine.store.submit(enqueue, Order(jobs=jobs))
        await acting.act(engine, TESTER, Act(verb="cancel", where="task:check"))
        wish = Act(verb="requeue", where="state:cancelled", pace="2/s")
        await acting.act(engine, TESTER, wish)
        assert await requeued(engine) == 1
        yield engine


async def test_a_pace_is_kept_also_where_somebody_looks_late(tmp_path: Path) -> None:
    clock = FakeClock()
    async with two_a_second(tmp_path, clock) as engine:
        for seconds, so_many in ((0.4, 1), (0.2, 2), (0.8, 3), (0.1, 4)):
            clock.move(seconds)
            assert await requeued(engine) == so_many


async def test_a_pause_is_not_made_up_for(tmp_path: Path) -> None:
    clock = FakeClock()
    async with two_a_second(tmp_path, clock) as engine:
        await engine.redrives.control(1, "pause", "tester")
        assert await requeued(engine) == 1
        clock.move(3600)
        await engine.redrives.control(1, "resume", "tester")
        assert await requeued(engine) == 2


async def test_a_faster_pace_holds_from_now_on(tmp_path: Path) -> None:
    clock = FakeClock()
    async with two_a_second(tmp_path, clock) as engine:
        clock.move(0.2)
        await engine.redrives.control(1, "resume", "tester", "10/s")
        assert await requeued(engine) == 1
        clock.move(0.1)
        assert await requeued(engine) == 2


async def test_a_pace_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    async with two_a_second(tmp_path, FakeClock()) as engine:
        odd = ControlRedrive(redrive=1, verb="resume", pace="often")
        with pytest.raises(UsageProblem, match="the pace cannot be read"):
            await redrives.control(engine, TESTER, odd)


@pytest.mark.parametrize("seconds", [86_400, -86_400], ids=["stood still", "was set back"])
async def test_a_clock_that_jumps_changes_little(tmp_path: Path, seconds: float) -> None:
    clock = FakeClock()
    async with two_a_second(tmp_path, clock) as engine:
        clock.move(seconds)
        assert await requeued(engine) <= 1 + 3
        clock.move(0.5)
        assert 2 <= await requeued(engine) <= 1 + 3 + 1


async def test_a_restart_keeps_the_pace(tmp_path: Path) -> None:
    clock = FakeClock()
    async with two_a_second(tmp_path, clock):
        pass
    clock.move(0.3)
    async with an_engine(tmp_path, CONFIG, clock=clock) as engine:
        assert await requeued(engine) == 1
        clock.move(0.2)
        assert await requeued(engine) == 2


async def test_what_ends_while_a_daemon_starts_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    under_way, has_read, go_on = stored.under_way, threading.Event(), threading.Event()

    def slowly(connection: Connection, redrive: int) -> list[int]:
        found = under_way(connection, redrive)
        has_read.set()
        go_on.wait(WITHIN)
        return found

    monkeypatch.setattr(stored, "under_way", slowly)
    async with an_engine(tmp_path, CONFIG) as engine:
        job = NewJob(task="check", queue="default", held=True)
        [placed] = await engine.store.submit(enqueue, Order(jobs=[job]))
        cancel = Act(verb="cancel", ids=[str(placed.id)])
        await acting.act(engine, TESTER, cancel)
        await acting.act(engine, TESTER, Act(verb="requeue", where="state:cancelled"))
        starting = asyncio.create_task(engine.redrives.start())
        assert await asyncio.to_thread(has_read.wait, WITHIN)
        await acting.act(engine, TESTER, cancel)
        go_on.set()
        await starting
        await engine.redrives.stop()
        while await engine.redrives.run_once():
            pass

        assert await told(engine, "redrive_completed")


async def test_a_restart_goes_on_with_it(tmp_path: Path) -> None:
    async with running(tmp_path, CONFIG) as bench:
        await some_dead(bench, 3)
        wish = Act(verb="requeue", where="state:dead", pace="1/h")
        await acting.act(bench.engine, TESTER, wish)
        await bench.event("step_retry_exhausted")

    async with running(tmp_path, CONFIG) as bench:
        found = await row(bench)
        assert (found.state, found.requeued) == ("running", 1)
        await bench.engine.redrives.control(found.id, "stop", "tester")
        await bench.event("redrive_stopped")


@pytest.mark.parametrize("leads", [True, False], ids=["the leader", "another node"])
async def test_among_nodes_nothing_is_kept_of_redrives_that_are_over(
    tmp_path: Path, leads: bool
) -> None:
    async with an_engine(tmp_path, url=postgresql_url()) as engine:
        if leads:
            await engine.leadership.renew()
        engine.redrives._under_way = {1: 7, 2: 7}  # which others have stopped, or work off
        await engine.redrives.run_once()
        assert engine.redrives._under_way == {}
