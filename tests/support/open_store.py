"""A store that is open, as the daemon has it: with its writer thread, and its troubles heard."""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine, text

from redrive.clock import Clock
from redrive.errors import TryLater
from redrived.store.database import Database, Trouble
from redrived.store.enqueue import NewJob, Order, Placed, enqueue
from redrived.store.store import Store
from redrived.store.unit import Landed

PATIENCE = 20.0  # seconds to wait for a fact before the test fails
WORK = NewJob(task="work", queue="default")


def url_of(database: Database) -> str:
    return database.url.render_as_string(hide_password=False)


class OpenStore:
    def __init__(self, url: str, clock: Clock) -> None:
        self.store = Store(url, clock, "n1")
        self.landed: list[Landed] = []
        self.store.landed.append(self.landed.append)
        self._troubles: asyncio.Queue[Trouble | None] = asyncio.Queue()
        self.store.troubled.append(self._troubles.put_nowait)

    async def open(self) -> OpenStore:
        await self.store.open()
        return self

    def submit(self, n: int = 1, *, must_land: bool = False) -> asyncio.Future[list[Placed]]:
        """Ask for `n` new jobs."""
        return self.store.submit(enqueue, Order(jobs=[WORK] * n), must_land=must_land)

    async def add(self, n: int = 1) -> list[int]:
        placed = await asyncio.wait_for(self.submit(n), PATIENCE)
        return [place.id for place in placed]

    async def trouble(self) -> Trouble | None:
        """The next thing told about troubles."""
        return await asyncio.wait_for(self._troubles.get(), PATIENCE)

    async def ids(self) -> list[int]:
        return await self.store.read(
            lambda connection: list(
                connection.execute(text("SELECT id FROM jobs ORDER BY id")).scalars()
            )
        )

    def tell(self, statement: str) -> Any:
        """Run one statement in the writer's own session, while the writer has nothing to do."""
        raw = self.store.database.writers.raw_connection()
        try:
            cursor = raw.cursor()
            cursor.execute(statement)
            row = cursor.fetchone() if cursor.description else None
            if not self.is_sqlite:
                raw.commit()
            return row and row[0]
        finally:
            raw.close()

    def be_impatient(self) -> None:
        """Wait for locks hardly at all."""
        name = "PRAGMA busy_timeout = 20" if self.is_sqlite else "SET lock_timeout = '20ms'"
        self.tell(name)

    @property
    def is_sqlite(self) -> bool:
        return self.store.database.is_sqlite

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Another program holds the database."""
        other = create_engine(url_of(self.store.database))
        lock = "BEGIN IMMEDIATE" if self.is_sqlite else "LOCK TABLE counters"
        with other.connect() as connection:
            connection.exec_driver_sql(lock)
            yield
            connection.rollback()
        other.dispose()

    @contextmanager
    def no_larger_files(self) -> Iterator[None]:
        """An error of the disk that a test can make (EFBIG)."""
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        path = self.store.database.path
        largest = max(os.stat(f"{path}{end}").st_size for end in ("", "-wal"))
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    def end_sessions(self) -> None:
        """Cut every connection to a PostgreSQL database but the one that does it."""
        url = url_of(self.store.database).replace("postgresql+psycopg", "postgresql")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )


async def refusal(future: asyncio.Future[Any]) -> TryLater:
    with pytest.raises(TryLater) as caught:
        await asyncio.wait_for(future, PATIENCE)
    return caught.value
