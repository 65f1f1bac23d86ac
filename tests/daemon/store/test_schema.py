"""The migrated schema is what `tables` says, and no daemon touches one it does not know."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from redrive.errors import ConfigProblem
from redrived.store import deadline, schema
from redrived.store.database import Database
from redrived.store.schema import current_version, known_versions, migrate
from redrived.store.store import Store
from redrived.store.tables import metadata
from support.clock import FakeClock
from support.databases import empty_postgresql_url
from support.ground import Ground
from support.open_store import WORK, OpenStore, url_of

_ON_SQLITE = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
_ON_POSTGRESQL = (
    "SELECT indexname, replace(indexdef, current_schema() || '.', '') FROM pg_indexes"
    " WHERE schemaname = current_schema()"
)


@pytest.fixture
def empty(kind: str, tmp_path: Path) -> Iterator[Database]:
    """No tables yet."""
    is_sqlite = kind == "sqlite"
    database = Database(f"sqlite:///{tmp_path}/new.db" if is_sqlite else empty_postgresql_url())
    yield database
    database.close()


both = pytest.mark.parametrize("kind", ["sqlite", "postgresql"])


def indexes(connection: Connection) -> dict[str, str]:
    found = connection.execute(
        text(_ON_SQLITE if connection.dialect.name == "sqlite" else _ON_POSTGRESQL)
    )
    return {name: " ".join(sql.split()) for name, sql in found if not name.startswith("alembic")}


def test_the_migrated_tables_are_those_of_the_code(database: Database) -> None:
    with database.writers.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


@both
def test_the_migrated_indexes_are_those_of_the_code(
    kind: str, empty: Database, tmp_path: Path
) -> None:
    """Word for word: what an index leaves out is not compared by Alembic."""
    with empty.writers.connect() as connection, connection.begin():
        metadata.create_all(connection)
        made = indexes(connection)
    migrated = Database(f"sqlite:///{tmp_path}/2.db" if empty.is_sqlite else empty_postgresql_url())
    with migrated.writers.connect() as connection, connection.begin():
        migrate(connection)
        assert indexes(connection) == made
    migrated.close()
    assert any("WHERE" in sql for sql in made.values())


@both
def test_a_store_is_migrated_once(kind: str, empty: Database) -> None:
    with empty.writers.connect() as connection, connection.begin():
        assert current_version(connection) is None
        assert migrate(connection)
        assert current_version(connection) == known_versions()[-1]
        assert not migrate(connection)


@both
def test_a_migration_that_dies_leaves_nothing_behind(kind: str, empty: Database) -> None:
    with empty.writers.connect() as connection:
        dying = connection.begin()
        migrate(connection)
        dying.rollback()
    with empty.writers.connect() as connection, connection.begin():
        assert current_version(connection) is None
        assert migrate(connection)


async def test_a_store_of_a_newer_redrive_is_refused_and_left_alone(
    database: Database, clock: FakeClock
) -> None:
    with database.writers.connect() as connection, connection.begin():
        connection.execute(text("UPDATE alembic_version SET version_num = '9999_future'"))
        connection.execute(text("UPDATE counters SET value = 77"))
    store = Store(url_of(database), clock, "n1")

    with pytest.raises(ConfigProblem, match=r"newer redrive \(schema 9999_future\)") as caught:
        await store.open()

    assert "install the newer version" in caught.value.hint
    await store.close()
    with database.readers.connect() as connection:
        assert set(connection.execute(text("SELECT value FROM counters")).scalars()) == {77}


async def test_an_older_store_is_brought_up_to_date_with_what_it_holds(
    database: Database, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = "op.add_column('jobs', sa.Column('colour', sa.Text()))"
    monkeypatch.setattr(schema, "FOLDER", with_next(tmp_path, more))
    with database.writers.connect() as connection, connection.begin():
        connection.execute(text("UPDATE counters SET value = 77"))
    store = Store(url_of(database), clock, "n1")
    await store.open()

    def look(connection: Connection) -> list[Any]:
        connection.execute(text("SELECT colour FROM jobs"))
        return [
            current_version(connection),
            *connection.execute(text("SELECT value FROM counters")),
        ]

    version, *values = await store.read(look)
    assert version == "9999_next"
    assert {value for (value,) in values} == {77}
    await store.close()


def with_next(folder: Path, *statements: str) -> Path:
    """The migrations, and one more."""
    newest = known_versions()[-1]
    copy = as_of(newest, folder)
    (copy / "versions" / "9999_next.py").write_text(
        "import sqlalchemy as sa\nfrom alembic import op\n"
        f"revision = '9999_next'\ndown_revision = {newest!r}\n"
        "def upgrade():\n" + "".join(f"    {each}\n" for each in statements)
    )
    return copy


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_migration_may_take_longer_than_any_question(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "op.execute('SELECT pg_sleep(0.5)')"
    monkeypatch.setattr(schema, "FOLDER", with_next(tmp_path, long))
    monkeypatch.setattr(deadline, "WITHIN", 0.3)
    with database.writers.connect() as connection:
        connection.execute(text("SET statement_timeout = 300"))
        connection.commit()
        with connection.begin():
            assert migrate(connection)
            assert current_version(connection) == "9999_next"
        with pytest.raises(DBAPIError, match=r"no answer within 0\.3 s|statement timeout"):
            connection.execute(text("SELECT pg_sleep(5)"))


@both
@pytest.mark.parametrize("version", known_versions()[:-1])
async def test_every_schema_there_ever_was_becomes_todays_and_keeps_its_jobs(
    version: str,
    kind: str,
    empty: Database,
    clock: FakeClock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as past:
        past.setattr(schema, "FOLDER", as_of(version, tmp_path))
        with empty.writers.connect() as connection, connection.begin():
            migrate(connection)
            assert current_version(connection) == version
    Ground(empty, clock).add(WORK, WORK, WORK)

    opened = await OpenStore(url_of(empty), clock).open()
    assert await opened.ids() == [1, 2, 3]
    assert await opened.add() == [4]
    await opened.store.close()
    with empty.writers.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


def as_of(version: str, folder: Path) -> Path:
    """The migrations up to one of them."""
    copy = folder / "migrations"
    shutil.copytree(schema.FOLDER, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (copy / "versions").glob("*.py"):
        if path.stem > version:
            path.unlink()
    return copy


def test_nodes_that_start_at_once_on_an_empty_database_migrate_it_once(clock: FakeClock) -> None:
    url = empty_postgresql_url()
    problems: list[BaseException] = []

    def start(node: str) -> None:
        async def open_and_close() -> None:
            store = Store(url, clock, node)
            await store.open()
            await store.close()

        try:
            asyncio.run(open_and_close())
        except BaseException as problem:  # noqa: BLE001 - told below
            problems.append(problem)

    nodes = [threading.Thread(target=start, args=(f"n{n}",)) for n in range(3)]
    for node in nodes:
        node.start()
    for node in nodes:
        node.join(30)
    assert problems == []


async def test_a_store_keeps_the_id_it_was_given(database: Database, clock: FakeClock) -> None:
    ids = set()
    for _ in range(2):
        store = Store(url_of(database), clock, "n1")
        await store.open()
        ids.add(store.id)
        await store.close()

    assert len(ids) == 1
    assert len(ids.pop()) == 32


MIGRATES = """
import sys
from pathlib import Path
from redrived.store.database import Database
from redrived.store.schema import migrate

database = Database(f"sqlite:///{sys.argv[1]}/redrive.db")
database.make_room()
with database.writers.connect() as connection, connection.begin():
    assert migrate(connection)
print([name for name in ("alembic", "pygments") if name in sys.modules])
"""


def test_a_migration_brings_no_highlighter_of_syntax_into_the_daemon(tmp_path: Path) -> None:
    command = [sys.executable, "-c", MIGRATES, str(tmp_path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)

    assert (done.stdout, done.stderr) == ("['alembic']\n", "")
