"""Enqueueing inside the application's own transaction, where it shares the store's PostgreSQL.

What is enqueued becomes a job, once, when the transaction commits; a rollback leaves nothing
behind. The daemon is not asked and need not run. What a call answers is a ticket: after the
commit, `Client.order(ticket)` tells of the job it became.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Unpack

from redrive.orders import Options, order_of
from redrive.outbox import connections
from redrive.outbox.insertion import Insertion
from redrive.protocol.commands import JobOrder

__all__ = ["AsyncOutbox", "Options", "Outbox"]


class Outbox:
    """For connections that block: SQLAlchemy's, or those of psycopg and other drivers.

    `connection` is the one that holds the transaction: a Connection or Session of SQLAlchemy,
    or a connection by the DB-API (psycopg, psycopg2, Django's). Nothing is committed here.
    """

    def __init__(self, schema: str | None = None) -> None:
        self._insertion = Insertion(schema)

    def enqueue(
        self,
        connection: Any,
        task: str,
        args: Mapping[str, Any] | None = None,
        **options: Unpack[Options],
    ) -> str:
        """One job, with the options of `Client.enqueue`; a delay counts from this call."""
        [ticket] = self.enqueue_many(connection, task, [order_of(args, options)])
        return ticket

    def enqueue_many(self, connection: Any, task: str, orders: Iterable[JobOrder]) -> list[str]:
        """Any number of jobs with one statement; a ticket for each."""
        rows = self._insertion.rows(task, orders)
        if rows.tickets:
            connections.tell(connection, self._insertion, rows.json)
        return rows.tickets


class AsyncOutbox:
    """The same for asyncio: SQLAlchemy's AsyncConnection or AsyncSession, psycopg's, asyncpg's."""

    def __init__(self, schema: str | None = None) -> None:
        self._insertion = Insertion(schema)

    async def enqueue(
        self,
        connection: Any,
        task: str,
        args: Mapping[str, Any] | None = None,
        **options: Unpack[Options],
    ) -> str:
        """One job, with the options of `Client.enqueue`; a delay counts from this call."""
        [ticket] = await self.enqueue_many(connection, task, [order_of(args, options)])
        return ticket

    async def enqueue_many(
        self, connection: Any, task: str, orders: Iterable[JobOrder]
    ) -> list[str]:
        """Any number of jobs with one statement; a ticket for each."""
        rows = self._insertion.rows(task, orders)
        if rows.tickets:
            await connections.tell_async(connection, self._insertion, rows.json)
        return rows.tickets
