"""What is done all the time costs the same however much waits: counted in steps of SQLite."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine

from redrive.filters import parse
from redrived.store import due
from redrived.store.actions import Act, act
from redrived.store.enqueue import NewJob
from redrived.store.listing import listed
from redrived.store.settle import complete
from support.ground import Ground

FEW, MANY = 20, 5_000
ALIKE = 1.3

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


@contextmanager
def steps(engine: Engine) -> Iterator[Callable[[], int]]:
    """Counts what SQLite's machine executes in tens."""
    with engine.connect() as connection:
        raw: Any = connection.connection.driver_connection
    count = 0

    def step() -> int:
        nonlocal count
        count += 1
        return 0

    raw.set_progress_handler(step, 10)
    try:
        yield lambda: count
    finally:
        raw.set_progress_handler(None, 0)


def lanes(ground: Ground, n: int) -> None:
    for queue in ("bulk", "default"):
        for task in ("other", "work"):
            ground.add(*[NewJob(task=task, queue=queue)] * n)


def cost_of_a_lease(ground: Ground) -> int:
    with steps(ground.database.writers) as taken:
        assert len(ground.take(2)) == 2
        return taken()


def cost_of_the_oldest(ground: Ground) -> int:
    with ground.database.writers.connect() as connection, steps(ground.database.writers) as taken:
        assert len(due.oldest_ready(connection)) == 2
        return taken()


@pytest.mark.parametrize("cost", [cost_of_a_lease, cost_of_the_oldest])
def test_it_costs_the_same_however_much_is_ready(
    ground: Ground, cost: Callable[[Ground], int]
) -> None:
    lanes(ground, FEW)
    before = cost(ground)
    lanes(ground, MANY)
    assert cost(ground) < ALIKE * before


def cost_of_what_is_not_done(ground: Ground) -> int:
    with steps(ground.database.readers) as taken, ground.database.readers.connect() as connection:
        found = listed(connection, parse("!state:done"), ground.clock.now(), count=True)
        assert (len(found.page.jobs), found.total) == (50, FEW * 50)
        return taken()


def test_what_is_not_done_is_found_without_passing_by_what_is_done(ground: Ground) -> None:
    later = ground.clock.now() + 3_600_000_000
    asleep = ground.add(*[NewJob(task="work", queue="default", available_at=later)] * (FEW * 50))
    ground.do(act, Act(verb="cancel", jobs=[asleep[0].id], by="ann"))
    done(ground, FEW)
    before = cost_of_what_is_not_done(ground)
    done(ground, FEW * 50)
    assert cost_of_what_is_not_done(ground) < ALIKE * before


def done(ground: Ground, n: int) -> None:
    ground.add(*[NewJob(task="work", queue="default")] * n)
    ground.do(complete, [ground.completed(job) for job in ground.hand(1, n)])
