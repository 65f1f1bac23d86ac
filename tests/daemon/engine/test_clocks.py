"""What waits falls due by the database's clock, and this machine's may show another time."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from redrive.clock import SECOND
from redrived.engine.engine import Engine
from redrived.store.enqueue import NewJob, Order, enqueue
from redrived.store.unit import Unit
from support.clock import FakeClock
from support.databases import postgresql_url
from support.engines import an_engine

MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
CONFIG = '[tasks.call]\nhttp = { url = "http://127.0.0.1:1/" }\nrate = "1/h"\n'


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    """On a machine whose clock is an hour ahead."""
    ahead = FakeClock(time.time_ns() // 1000 + HOUR)
    async with an_engine(tmp_path, CONFIG, url=postgresql_url(), clock=ahead) as made:
        yield made


def waits(engine: Engine, timer: str) -> float:
    """For how many minutes a timer has been set."""
    instant = engine.timers._timers[timer].instant  # pyright: ignore[reportPrivateUsage]
    return round((instant - engine.clock.now()) / MINUTE)


async def enqueued(engine: Engine, *, in_minutes: int = 0) -> None:
    at = engine.clock.now() - HOUR + in_minutes * MINUTE
    job = NewJob(task="call", queue="default", available_at=at)
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
    def begun(unit: Unit, jobs: Sequence[int]) -> Sequence[None]:
        for job in jobs:
            values = {"lane": "task:call", "at": unit.now - 20 * MINUTE, "job": job}
            unit.execute("INSERT INTO starts (lane, at, job) VALUES (:lane, :at, :job)", **values)
        return [None] * len(jobs)

    await engine.store.submit(begun, 7)
    await enqueued(engine)
    await engine.dispatcher.run_once()

    assert waits(engine, "rate") == 40
