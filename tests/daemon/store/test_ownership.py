"""Nothing in a SQLite file is believed, or changed, before it is known to be a store of ours."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from redrive.errors import ConfigProblem, RedriveError
from redrived.store.backup import examine
from redrived.store.ownership import APPLICATION_ID
from support.clock import FakeClock
from support.open_store import OpenStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "redrive.db"


def opening(path: Path) -> OpenStore:
    return OpenStore(f"sqlite:///{path}", FakeClock())


def run(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


async def refusal(path: Path) -> ConfigProblem:
    before = contents(path.parent)
    with pytest.raises(ConfigProblem) as caught:
        await opening(path).open()
    assert contents(path.parent) == before
    return caught.value


async def test_a_store_bears_our_mark_from_its_first_day(path: Path) -> None:
    store = await opening(path).open()
    await store.store.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)


@pytest.mark.parametrize(
    "script",
    [
        "CREATE TABLE mine (a)",
        f"PRAGMA application_id = {APPLICATION_ID + 1}",
        "CREATE TABLE alembic_version (version_num); INSERT INTO alembic_version VALUES ('x')",
        "CREATE TABLE jobs (a); CREATE TRIGGER t AFTER INSERT ON jobs BEGIN DELETE FROM jobs; END",
    ],
)
async def test_a_database_of_another_program_is_refused_and_not_touched(
    path: Path, script: str
) -> None:
    run(path, script)
    assert "of another program" in (await refusal(path)).message
    with pytest.raises(RedriveError, match=r"no store of redrive|of another program"):
        examine(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
async def test_a_store_of_another_user_is_refused(path: Path) -> None:
    run(path, "PRAGMA user_version = 1")
    os.chown(path, 12345, -1)
    problem = await refusal(path)
    assert "belongs to uid 12345" in problem.message
    assert "chown" in problem.hint


async def test_a_store_from_before_there_was_a_mark_gets_one(path: Path) -> None:
    store = await opening(path).open()
    ids = await store.add(3)
    await store.store.close()
    run(path, "PRAGMA application_id = 0")
    store = await opening(path).open()
    assert await store.ids() == ids
    assert store.tell("PRAGMA application_id") == APPLICATION_ID
    await store.store.close()


async def test_an_empty_file_becomes_a_store(path: Path) -> None:
    run(path, "")
    store = await opening(path).open()
    assert await store.add() == [1]
    await store.store.close()
