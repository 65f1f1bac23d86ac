"""An application that keeps its data in the store's PostgreSQL database, under a role of its own."""

from __future__ import annotations

import uuid
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql

RIGHTS = "GRANT INSERT (ticket, task, wish) ON outbox TO {role}"


class Application:
    def __init__(self, url: str) -> None:
        self.owner_url = url.replace("postgresql+psycopg://", "postgresql://")
        self.role = f"app_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(self.owner_url) as owner:
            for statement in (
                "CREATE ROLE {role} LOGIN",
                "CREATE TABLE sales (id bigint PRIMARY KEY)",
                "GRANT SELECT, INSERT ON sales TO {role}",
                RIGHTS,
            ):
                owner.execute(sql.SQL(statement).format(role=sql.Identifier(self.role)))
        self.url = psycopg.conninfo.make_conninfo(self.owner_url, user=self.role)

    def connect(self) -> psycopg.Connection[Any]:
        """What `with` commits, or rolls back after an exception."""
        return psycopg.connect(self.url)

    def sales(self) -> list[int]:
        with self.connect() as connection:
            return [id for (id,) in connection.execute("SELECT id FROM sales ORDER BY id")]

    def write(self, task: str = "work", wish: str = "{}") -> None:
        """A row by plain SQL, as other languages insert it, and as wrong as you like."""
        with self.connect() as connection:
            connection.execute("INSERT INTO outbox (task, wish) VALUES (%s, %s)", (task, wish))

    def tickets(self) -> list[str]:
        with psycopg.connect(self.owner_url) as owner:
            return [ticket for (ticket,) in owner.execute("SELECT ticket FROM outbox ORDER BY id")]

    def outcomes(self) -> list[str | None]:
        with psycopg.connect(self.owner_url) as owner:
            return [word for (word,) in owner.execute("SELECT outcome FROM outbox ORDER BY id")]

    @contextmanager
    def holding_up_new_jobs(self) -> Generator[psycopg.Connection[Any]]:
        """Nobody gets an id for a new job until the block ends."""
        with psycopg.connect(self.owner_url) as owner:
            owner.execute("SELECT value FROM counters WHERE name = 'job' FOR UPDATE")
            yield owner
            owner.rollback()

    def somebody_waits(self) -> bool:
        with psycopg.connect(self.owner_url) as owner:
            found = owner.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                " AND datname = current_database()"
            ).fetchone()
        return bool(found and found[0])

    def close(self) -> None:
        """Roles belong to the whole server: this one goes with its test."""
        with psycopg.connect(self.owner_url) as owner:
            role = sql.Identifier(self.role)
            owner.execute(sql.SQL("DROP OWNED BY {role}").format(role=role))
            owner.execute(sql.SQL("DROP ROLE {role}").format(role=role))
