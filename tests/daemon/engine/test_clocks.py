"""What waits falls due by the database's clock, and this machine's may show another time."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from redrive.clock import SECOND
from redrive.lifecycle import JobState
from redrive.protocol.commands import Act, Enqueue, JobOrder
from redrived.api import acting
from redrived.api.enqueue import enqueue_jobs
from redrived.engine.engine import Engine
from redrived.processes import wire
from redrived.store import jobs
from redrived.store.enqueue import NewJob, Order, enqueue
from redrived.store.leases import lease
from redrived.store.picking import InHand, Room, TaskRules
from redrived.store.redrives import active
from redrived.store.unit import Unit
from support.clock import FakeClock
from support.databases import postgresql_url
from support.engine import TESTER
from support.engines import an_engine

MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
CONFIG = """
[tasks.call]
http = { url = "http://127.0.0.1:1/" }
rate = "1/h"
retry = { delays = ["10m"], jitter = 0 }
"""


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    """On a machine whose clock is an hour ahead."""
    ahead = FakeClock(time.time_ns() // 1000 + HOUR)
    async with an_engine(tmp_path, CONFIG, url=postgresql_url(), clock=ahead) as made:
        await made.leadership.renew()  # the first time that it hears of that clock
        yield made


def waits(engine: Engine, timer: str) -> float:
    """For how many minutes a timer has been set."""
    instant = engine.timers._timers[timer].instant  # pyright: ignore[reportPrivateUsage]
    return round((instant - engine.clock.now()) / MINUTE)


async def enqueued(engine: Engine, *, in_minutes: int = 0) -> None:
    at = engine.clock.now() - HOUR + in_minutes * MINUTE
    job = NewJob(task="call", queue="default", available_at=at, max_attempts=2)
    await engine.store.submit(enqueue, Order(jobs=[job]))


async def test_what_sleeps_there_is_not_asked_for_until_it_is_due(engine: Engine) -> None:
    await enqueued(engine, in_minutes=10)

    assert not await engine.promoter.run_once()
    assert waits(engine, "next due") == 10


async def test_a_gate_is_opened_when_its_time_has_come_there(engine: Engine) -> None:
    await enqueued(engine)
    engine.gates.due_sooner(engine.clock.now() - HOUR + 5 * MINUTE)

    assert waits(engine, "gate") == 5


async def test_a_rate_is_looked_at_again_when_it_allows_more_there(engine: Engine) -> None:
    def begun(unit: Unit, items: Sequence[int]) -> Sequence[None]:
        for job in items:
            values = {"lane": "task:call", "at": unit.now - 20 * MINUTE, "job": job}
            unit.execute("INSERT INTO starts (lane, at, job) VALUES (:lane, :at, :job)", **values)
        return [None] * len(items)

    await engine.store.submit(begun, 7)
    await enqueued(engine)
    await engine.dispatcher.run_once()

    assert waits(engine, "rate") == 40


async def leased(engine: Engine) -> InHand:
    await enqueued(engine)
    room = Room(slots=1, tasks={"call": TaskRules()})
    [job] = (await engine.store.submit(lease, room)).picked.slots
    return job


async def test_a_delay_is_counted_from_the_time_there(engine: Engine) -> None:
    await enqueue_jobs(engine, TESTER, Enqueue(task="call", orders=[JobOrder(delay=600.0)]))

    await engine.promoter.run_once()
    assert waits(engine, "next due") == 10


async def test_so_is_the_delay_of_a_retry(engine: Engine) -> None:
    job = await leased(engine)
    now = engine.clock.now()
    engine.settler.lost(job, None, now, "gone", None, wrote=False, too_long=False, left={})

    await engine.promoter.run_once()
    assert waits(engine, "next due") == 10


async def test_and_a_snooze(engine: Engine) -> None:
    job = await leased(engine)
    now = engine.clock.now()
    until = wire.Failure(names=[], message="", until=now + 10 * MINUTE)
    report = wire.Report(job.id, job.lease, now, 0, outcome="snoozed", failure=until)
    engine.settler.reported(job, report, None, now, too_long=False)

    await engine.promoter.run_once()
    assert waits(engine, "next due") == 10


async def test_what_is_interrupted_may_run_again_at_once(engine: Engine) -> None:
    job = await leased(engine)
    engine.settler.put_back(job, "a test", has_begun=True)

    await engine.promoter.run_once()
    assert "next due" not in engine.timers._timers  # pyright: ignore[reportPrivateUsage]
    again = await engine.store.read(jobs.get, job.id)
    assert again is not None
    assert again.state is JobState.QUEUED


async def test_a_redrive_that_goes_on_keeps_its_pace(engine: Engine) -> None:
    for _ in range(3):
        await enqueued(engine)
    await acting.act(engine, TESTER, Act(verb="cancel", where="task:call"))
    await acting.act(engine, TESTER, Act(verb="requeue", where="task:call", pace="2/h"))
    while await engine.redrives.run_once():
        pass
    engine.redrives._next_at.clear()  # as a restart does
    await engine.redrives.run_once()
    assert [row.requeued for row in await engine.store.read(active)] == [1]
    assert waits(engine, "redrive 1") == 30
