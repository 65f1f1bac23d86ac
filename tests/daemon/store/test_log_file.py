"""SQLite's write-ahead log: it gets its length while nothing is to be done, and keeps it."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import text

from redrived.store.connections import LOG_SIZE
from redrived.store.database import AMPLE, LOG_STEP
from support.clock import FakeClock
from support.open_store import OpenStore


@pytest.fixture
async def opened(tmp_path: Path, clock: FakeClock) -> AsyncIterator[OpenStore]:
    opened = await OpenStore(f"sqlite:///{tmp_path}/redrive.db", clock).open()
    await opened.add()
    yield opened
    await opened.store.close()


def size_of_log(opened: OpenStore) -> int:
    return opened.store.database.path.with_name("redrive.db-wal").stat().st_size


def tidy(opened: OpenStore) -> int:
    """As the writer does it, from commit to commit; how many steps it took."""
    steps = 1
    while opened.store.database.tidy():
        steps += 1
    return steps


async def test_the_log_gets_its_length_step_by_step_and_keeps_it(opened: OpenStore) -> None:
    assert size_of_log(opened) < LOG_STEP
    assert tidy(opened) > LOG_SIZE // LOG_STEP
    assert size_of_log(opened) == LOG_SIZE
    await opened.add(1_000)
    assert tidy(opened) == 1
    assert size_of_log(opened) == LOG_SIZE


async def test_the_writer_lengthens_the_log_after_a_commit(opened: OpenStore) -> None:
    opened.store.writer.tidy()
    await opened.add()
    await opened.store.writer.stop()  # the step comes after the answer
    assert LOG_STEP <= size_of_log(opened) < 2 * LOG_STEP


async def test_a_crash_with_a_lengthened_log_loses_nothing(
    opened: OpenStore, clock: FakeClock, tmp_path: Path
) -> None:
    tidy(opened)
    await opened.add(4)
    (tmp_path / "crashed").mkdir()
    for end in ("", "-wal"):
        shutil.copy(f"{opened.store.database.path}{end}", tmp_path / "crashed")
    found = await OpenStore(f"sqlite:///{tmp_path}/crashed/redrive.db", clock).open()
    assert await found.ids() == [1, 2, 3, 4, 5]
    assert await found.add() == [6]
    assert found.tell("PRAGMA integrity_check") == "ok"
    await found.store.close()


async def test_a_log_that_had_to_grow_shrinks_to_its_length(opened: OpenStore) -> None:
    with opened.store.database.readers.connect() as connection, connection.begin():
        connection.execute(text("SELECT count(*) FROM jobs"))
        while size_of_log(opened) < LOG_SIZE + LOG_STEP:
            await opened.add(5_000)
    tidy(opened)
    await opened.add()
    assert size_of_log(opened) == LOG_SIZE


async def test_a_disk_without_plenty_of_room_is_left_as_it_is(
    opened: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = SimpleNamespace(free=AMPLE - 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: disk)
    assert tidy(opened) == 1
    assert size_of_log(opened) < LOG_STEP


async def test_a_log_that_cannot_be_lengthened_does_as_it_is(opened: OpenStore) -> None:
    with opened.no_larger_files():
        assert tidy(opened) == 1
    assert tidy(opened) == 1, "it is not tried again: the next megabyte may be the last of a quota"
    assert await opened.add() == [2]


async def test_the_log_of_a_store_behind_a_link_lies_beside_the_file(
    tmp_path: Path, clock: FakeClock
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "store.db").touch(mode=0o600)
    (tmp_path / "link.db").symlink_to(tmp_path / "elsewhere" / "store.db")
    linked = await OpenStore(f"sqlite:///{tmp_path}/link.db", clock).open()
    await linked.add()
    tidy(linked)
    assert (tmp_path / "elsewhere" / "store.db-wal").stat().st_size == LOG_SIZE
    await linked.store.close()


async def test_tidying_waits_for_nobody_who_holds_the_store(opened: OpenStore) -> None:
    with opened.locked(), pytest.raises(sqlite3.OperationalError, match="locked"):
        tidy(opened)
    assert opened.tell("PRAGMA busy_timeout") == 5_000
