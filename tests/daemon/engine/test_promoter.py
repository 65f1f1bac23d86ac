"""What falls due is never slept through, however its landing and a promotion meet."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from sqlalchemy import text

from redrive.clock import SECOND
from redrived.engine.engine import Engine
from redrived.store.enqueue import NewJob, Order, enqueue
from support.engines import an_engine

PATIENCE = 20.0


def there(engine: Engine) -> int:
    with engine.store.database.readers.connect() as connection:
        return int(connection.execute(text("SELECT count(*) FROM jobs")).scalar_one())


async def test_what_lands_while_a_promotion_is_on_its_way_keeps_its_timer(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        promoter = engine.promoter
        engine.store.landed.append(promoter._look)  # pyright: ignore[reportPrivateUsage]
        promoting = asyncio.create_task(promoter.run_once())
        await asyncio.sleep(0)
        later = engine.clock.now() + 60 * SECOND
        order = Order(jobs=[NewJob(task="work", queue="default", available_at=later)])
        sleeper = engine.store.submit(enqueue, order)
        deadline = time.monotonic() + PATIENCE
        while not there(engine):  # the loop stands still meanwhile: both land, then both tell
            assert time.monotonic() < deadline
        await sleeper
        await promoting
        timer = engine.timers._timers["next due"]  # pyright: ignore[reportPrivateUsage]
        assert timer.instant == later
