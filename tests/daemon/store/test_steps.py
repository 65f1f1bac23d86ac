"""What is done all the time costs the same however much waits: counted in steps of SQLite."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine

from redrived.store import due
from redrived.store.enqueue import NewJob
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
