"""The connections to either database: one that writes, and some that cannot.

SQLite's writer is also the one that checkpoints: two connections doing so can corrupt a WAL
database before 3.51.3.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import QueuePool, StaticPool

Durability = Literal["full", "normal"]

BUSY_TIMEOUT = 5.0  # seconds that SQLite waits for a lock of somebody else
PREPARED = 512  # statements that SQLite's driver keeps ready; it would be 128
LOGGED = 4_000  # pages that SQLite's log holds before they move into the file
LOG_SIZE = 32 + LOGGED * (24 + 4096)  # bytes of a log of so many, with its headers


def to_sqlite(path: Path, durability: Durability) -> tuple[Engine, Engine]:
    options: dict[str, Any] = {
        "isolation_level": None,
        "check_same_thread": False,
        "timeout": BUSY_TIMEOUT,
        "cached_statements": PREPARED,
    }
    writers = create_engine(f"sqlite:///{path}", poolclass=StaticPool, connect_args=options)

    def read() -> sqlite3.Connection:
        # Where the file has vanished SQLite would make an empty one.
        uri = f"file:{quote(str(path))}?mode=rw"
        connection: sqlite3.Connection = sqlite3.connect(uri, uri=True, **options)
        return connection

    readers = create_engine(
        "sqlite://", creator=read, poolclass=QueuePool, pool_size=4, max_overflow=0
    )

    @event.listens_for(writers, "connect")
    def _writer_connects(raw: sqlite3.Connection, _record: object) -> None:
        for pragma in (
            "auto_vacuum = INCREMENTAL",  # before the first page: later it would say nothing
            "journal_mode = WAL",
            f"synchronous = {durability}",
            "foreign_keys = ON",
            "trusted_schema = OFF",
            "cell_size_check = ON",
            "mmap_size = 0",
            f"journal_size_limit = {LOG_SIZE}",
            f"wal_autocheckpoint = {LOGGED}",
            "cache_size = -32768",
        ):
            raw.execute(f"PRAGMA {pragma}")

    @event.listens_for(readers, "connect")
    def _reader_connects(raw: sqlite3.Connection, _record: object) -> None:
        for pragma in ("query_only = ON", "trusted_schema = OFF", "wal_autocheckpoint = 0"):
            raw.execute(f"PRAGMA {pragma}")

    # The driver begins nothing by itself; a writer that read before it wrote would get
    # SQLITE_BUSY_SNAPSHOT at once, so it takes its lock with the first word.
    @event.listens_for(writers, "begin")
    def _writer_begins(connection: Connection) -> None:
        below(connection).execute("BEGIN IMMEDIATE")

    @event.listens_for(readers, "begin")
    def _reader_begins(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN")

    return writers, readers


def to_postgresql(url: str, durability: Durability) -> tuple[Engine, Engine]:
    from redrived.store.deadline import BoundedConnection  # brings the driver

    # A node that stands still in mid-commit holds up all the others: not for long.
    settings = (
        "-c statement_timeout=9000 -c lock_timeout=5000 -c jit=off"
        " -c idle_in_transaction_session_timeout=5000 -c application_name=redrive"
    )
    arguments: dict[str, Any] = {
        "connect_timeout": 5,
        "keepalives_idle": 30,
        "tcp_user_timeout": 10_000,
    }
    # A change looks up few rows by their ids, however many there are by the time it is made
    # again: one plan for that is kept, and it never is to read all of a table.
    plans = "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c random_page_cost=1.1"
    commit = "on" if durability == "full" else "off"
    writers = create_engine(
        url,
        poolclass=QueuePool,
        pool_size=1,
        max_overflow=0,
        connect_args={
            **arguments,
            "options": f"{settings} {plans} -c synchronous_commit={commit}",
        },
    )
    readers = create_engine(
        url,
        poolclass=QueuePool,
        pool_size=4,
        max_overflow=0,
        pool_pre_ping=True,
        isolation_level="REPEATABLE READ",  # several questions, one snapshot
        connect_args={
            **arguments,
            "prepare_threshold": None,  # a question is planned when it is asked
            "options": f"{settings} -c default_transaction_read_only=on",
        },
    )

    def connect(_dialect: object, _record: object, args: Any, options: Any) -> Any:
        return BoundedConnection.connect(*args, **options)

    for engine in (writers, readers):
        event.listen(engine, "do_connect", connect)
    return writers, readers


def below(connection: Connection) -> Any:
    """The driver's own connection."""
    return connection.connection.driver_connection
