"""Two nodes on one PostgreSQL database, the first of them stopped in mid-commit."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar, cast

from sqlalchemy import text

from redrived.store.database import Database
from redrived.store.group import Entry, Operation, run_group
from redrived.store.unit import Unit
from support.clock import FakeClock
from support.databases import postgresql_url
from support.ground import Ground

PATIENCE = 20.0
Answer = TypeVar("Answer")
Item = TypeVar("Item")
Result = TypeVar("Result")


class Pair:
    """What the second does waits for the first, or is over."""

    def __init__(self) -> None:
        url, clock = postgresql_url(), FakeClock()
        self.one = Ground(Database(url), clock, "one")
        self.two = Ground(Database(url), clock, "two")
        self._thread = ThreadPoolExecutor(1)

    @contextmanager
    def mid_commit(self, operation: Operation[Item, Result], item: Item) -> Generator[Result]:
        """The first has done something and has not committed it yet."""
        with self.one.database.writers.connect() as connection, connection.begin():
            unit = Unit(connection, self.one.database, "one", self.one.clock.now())
            entry = Entry(operation, item, None, must_land=False)
            run_group(unit, [entry])
            assert not isinstance(entry.answer, BaseException)
            yield cast("Result", entry.answer)

    def meanwhile(self, call: Callable[[], Answer]) -> Future[Answer]:
        """Begin something on the second; back once it waits for the first, or has ended."""
        future = self._thread.submit(call)
        deadline = time.monotonic() + PATIENCE
        while not future.done() and not self._somebody_waits():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return future

    def _somebody_waits(self) -> bool:
        with self.one.database.readers.connect() as connection:
            waiting = connection.execute(
                text(
                    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                    " AND datname = current_database()"
                )
            ).scalar_one()
        return bool(waiting)

    def close(self) -> None:
        self._thread.shutdown()
        self.one.database.close()
        self.two.database.close()
