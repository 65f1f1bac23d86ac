"""How one statement is said over somebody else's connection, whichever library it is of.

Known by what they can do, because none of the libraries is ours to import: SQLAlchemy's have
`exec_driver_sql`, its sessions `get_bind`, asyncpg's `fetchrow`, all others `cursor`.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from inspect import iscoroutinefunction
from typing import Any

from redrive.errors import UsageProblem
from redrive.outbox.insertion import Insertion

_PLACEHOLDERS = {"format": "%s", "pyformat": "%s", "numeric_dollar": "$1"}
_NO_TABLE = {"42P01", "3F000", "42703"}  # no such table, schema, column
_NO_RIGHT = "42501"


class NoOutbox(UsageProblem):
    """The connection leads to no outbox of redrive, or may not write into it."""

    code = "no_outbox"


def tell(connection: Any, insertion: Insertion, rows: str) -> None:
    _refuse_others(connection)
    if _is_async(connection):
        raise UsageProblem(
            f"{_kind(connection)} is for asyncio", hint="use `redrive.AsyncOutbox` with it"
        )
    with _explained():
        if hasattr(connection, "get_bind"):
            connection = connection.connection()
        if hasattr(connection, "exec_driver_sql"):
            connection.exec_driver_sql(insertion.sql(_placeholder(connection)), (rows,))
            return
        cursor = connection.cursor()
        try:
            cursor.execute(insertion.sql("%s"), (rows,))
        finally:
            cursor.close()


async def tell_async(connection: Any, insertion: Insertion, rows: str) -> None:
    _refuse_others(connection)
    if not _is_async(connection):
        raise UsageProblem(
            f"{_kind(connection)} is not for asyncio", hint="use `redrive.Outbox` with it"
        )
    with _explained():
        if hasattr(connection, "get_bind"):
            connection = await connection.connection()
        if hasattr(connection, "exec_driver_sql"):
            await connection.exec_driver_sql(insertion.sql(_placeholder(connection)), (rows,))
        elif _is_asyncpg(connection):
            await connection.execute(insertion.sql("$1"), rows)
        else:
            await connection.execute(insertion.sql("%s"), (rows,))


def _is_async(connection: Any) -> bool:
    execute = getattr(connection, "execute", None)
    return _is_asyncpg(connection) or iscoroutinefunction(execute)


def _is_asyncpg(connection: Any) -> bool:
    return hasattr(connection, "fetchrow")


def _refuse_others(connection: Any) -> None:
    if "sqlite" in type(connection).__module__:
        raise _not_postgresql("SQLite")
    ways = ("get_bind", "exec_driver_sql", "cursor")
    if not any(hasattr(connection, way) for way in ways):
        raise UsageProblem(
            f"{_kind(connection)} is no connection",
            hint="give the connection or session that holds your transaction",
        )


def _placeholder(connection: Any) -> str:
    dialect = connection.dialect
    if dialect.name != "postgresql":
        raise _not_postgresql(dialect.name)
    return _PLACEHOLDERS[dialect.paramstyle]


def _not_postgresql(name: str) -> NoOutbox:
    return NoOutbox(
        f"there is no outbox in {name}: a transaction can be shared only in PostgreSQL",
        hint="commit first, then enqueue with `redrive.Client`",
    )


def _kind(connection: object) -> str:
    kind = type(connection)
    return f"{kind.__module__}.{kind.__qualname__}"


@contextmanager
def _explained() -> Generator[None]:
    """Say in our words what the database says of the outbox; the rest is between it and you."""
    try:
        yield
    except Exception as error:
        state = _sqlstate(error)
        if state in _NO_TABLE:
            raise NoOutbox(
                "there is no outbox of redrive in this database, or not in this schema",
                hint="the daemon makes it at its start; `Outbox(schema=...)` names its schema",
            ) from error
        if state == _NO_RIGHT:
            raise NoOutbox(
                "this role of the database may not write into the outbox",
                hint="GRANT USAGE ON SCHEMA ... and INSERT (ticket, task, wish) ON ...outbox",
            ) from error
        raise


def _sqlstate(error: Exception) -> str | None:
    said: Any = getattr(error, "orig", error)
    state: str | None = getattr(said, "sqlstate", None) or getattr(said, "pgcode", None)
    return state
