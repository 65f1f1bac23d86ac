"""Is the store sound? A look that takes seconds at most, however large it is."""

from __future__ import annotations

import sqlite3
import time
from typing import cast

from msgspec import Struct
from sqlalchemy import Connection, text

from redrived.store.database import Database

PATIENCE = 5.0  # seconds


_CLOCK = text("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)")


class Soundness(Struct, frozen=True, kw_only=True):
    version: str
    now: int  # by the database's clock
    newest: int  # when the newest event was
    problem: str | None = None


def look(connection: Connection, database: Database, machine: int) -> Soundness:
    """`machine` is the instant by this machine's clock."""
    version = "sqlite_version()" if database.is_sqlite else "current_setting('server_version')"
    newest = connection.execute(text("SELECT at FROM events ORDER BY seq DESC LIMIT 1")).scalar()
    return Soundness(
        version=str(connection.execute(text(f"SELECT {version}")).scalar_one()),
        now=machine if database.is_sqlite else int(connection.execute(_CLOCK).scalar_one()),
        newest=newest or 0,
        problem=_quick_check(connection) if database.is_sqlite else None,
    )


def _quick_check(connection: Connection) -> str | None:
    """What SQLite finds wrong within our patience; what it has not looked at counts as right."""
    raw = cast(sqlite3.Connection, connection.connection.dbapi_connection)
    until = time.monotonic() + PATIENCE
    raw.set_progress_handler(lambda: time.monotonic() > until, 10_000)
    try:
        (found,) = raw.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError:
        return None  # interrupted, by us
    finally:
        raw.set_progress_handler(None, 0)
    return None if found == "ok" else str(found)
