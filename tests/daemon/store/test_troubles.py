"""Each trouble of a database ends the unit of work and has the consequence the writer names."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import resource
import sqlite3
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from redrive.errors import TryLater
from redrived.store import writer
from redrived.store.database import Database, Trouble
from redrived.store.enqueue import Order, enqueue
from redrived.store.group import Entry
from redrived.store.writer import StoreFailed
from support.clock import FakeClock
from support.databases import other_server
from support.ground import Ground
from support.invariants import check
from support.open_store import PATIENCE, WORK, OpenStore, url_of

sqlite_only = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
postgresql_only = pytest.mark.parametrize("database", ["postgresql"], indirect=True)


@pytest.fixture
async def opened(database: Database, clock: FakeClock) -> AsyncIterator[OpenStore]:
    opened = await OpenStore(url_of(database), clock).open()
    opened.be_impatient()
    yield opened
    await opened.store.close()


async def refusal(future: asyncio.Future[Any]) -> TryLater:
    with pytest.raises(TryLater) as caught:
        await asyncio.wait_for(future, PATIENCE)
    return caught.value


# ---- busy --------------------------------------------------------------------------------


async def test_work_waits_until_another_program_lets_go(opened: OpenStore, ground: Ground) -> None:
    with opened.locked():
        waiting = [opened.submit(), opened.submit(must_land=True)]
        assert await opened.trouble() is Trouble.BUSY
        assert await opened.ids() == []  # readers go on meanwhile

    assert [[place.id for place in await each] for each in waiting] == [[1], [2]]
    assert await opened.trouble() is None
    check(ground)


async def test_what_may_not_wait_so_long_is_refused_and_what_must_land_lands_later(
    opened: OpenStore, ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "PATIENCE", 0.1)
    with opened.locked():
        must = opened.submit(must_land=True)
        problem = await refusal(opened.submit())
        assert "another program holds the database" in str(problem)
        assert problem.retry_after == 1.0
        assert not must.done()

    assert len(await must) == 1
    assert await opened.ids() == [1]
    check(ground)


@contextmanager
def no_larger_files(opened: OpenStore) -> Iterator[None]:
    """An error of the disk that a test can make (EFBIG)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    path = opened.store.database.path
    largest = max(os.stat(f"{path}{end}").st_size for end in ("", "-wal"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


# ---- full --------------------------------------------------------------------------------


@contextmanager
def no_more_pages(opened: OpenStore) -> Iterator[None]:
    """The portable full disk: SQLite is told that its file may not grow."""
    opened.tell(f"PRAGMA max_page_count = {opened.tell('PRAGMA page_count')}")
    yield
    opened.tell("PRAGMA max_page_count = 1000000")


@sqlite_only
async def test_a_full_disk_refuses_new_work_and_keeps_what_must_land(
    opened: OpenStore, ground: Ground
) -> None:
    await opened.add(10)
    with no_more_pages(opened):
        must = opened.submit(2_000, must_land=True)
        problem = await refusal(opened.submit(2_000))
        assert "the disk is full" in str(problem)
        assert await opened.trouble() is Trouble.FULL
        assert await opened.ids() == list(range(1, 11))
        check(ground)
        assert not must.done()

    assert [place.id for place in await asyncio.wait_for(must, PATIENCE)] == list(range(11, 2_011))
    assert await opened.trouble() is None
    check(ground)


@sqlite_only
async def test_a_stop_on_a_full_disk_ends_within_its_bound(opened: OpenStore) -> None:
    with no_more_pages(opened):
        must = opened.submit(2_000, must_land=True)
        assert await opened.trouble() is Trouble.FULL
        begun = time.monotonic()
        await opened.store.writer.stop(within=0.3)

    assert "the disk is full" in str(await refusal(must))
    # Bounded waiting, not a speed: a writer that never gives up would hang here.
    assert time.monotonic() - begun < PATIENCE


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = (
        os.geteuid() == 0
        and not subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=3m", "redrive-test", str(folder)],
            capture_output=True,
            check=False,
        ).returncode
    )
    if not mounted:
        pytest.skip("mounting a small disk is not allowed here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


async def add_until_refused(opened: OpenStore, accepted: list[int]) -> None:
    while True:
        accepted += await opened.add(50)


def fill(disk: Path) -> Path:
    ballast = disk / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(b"\0" * 4096)
    return ballast


async def test_a_disk_that_fills_up_loses_nothing_and_work_goes_on_when_there_is_room(
    small_disk: Path, clock: FakeClock
) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"\0" * 1_000_000)
    opened = await OpenStore(f"sqlite:///{small_disk}/redrive.db", clock).open()
    accepted: list[int] = []
    with pytest.raises(TryLater, match="the disk is full"):
        await add_until_refused(opened, accepted)
    must = opened.submit(50, must_land=True)
    assert await opened.ids() == accepted
    assert opened.store.failed is not None
    assert not opened.store.failed.done()

    ballast.unlink()
    accepted += [place.id for place in await asyncio.wait_for(must, PATIENCE)]
    accepted += await opened.add(50)
    await opened.store.close()

    reopened = Ground(Database(f"sqlite:///{small_disk}/redrive.db"), clock)
    check(reopened)
    assert [id for id in accepted if reopened.job(id)] == accepted
    reopened.database.close()
    with contextlib.closing(sqlite3.connect(small_disk / "redrive.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_a_store_on_a_full_disk_can_be_closed(small_disk: Path, clock: FakeClock) -> None:
    opened = await OpenStore(f"sqlite:///{small_disk}/redrive.db", clock).open()
    ids = await opened.add(100)
    ballast = fill(small_disk)
    await opened.store.close()

    ballast.unlink()
    reopened = await OpenStore(f"sqlite:///{small_disk}/redrive.db", clock).open()
    assert await reopened.ids() == ids
    await reopened.store.close()


async def test_a_commit_that_needs_no_room_does_not_end_a_full_disk(
    small_disk: Path, clock: FakeClock
) -> None:
    opened = await OpenStore(f"sqlite:///{small_disk}/redrive.db", clock).open()
    ballast = fill(small_disk)
    with pytest.raises(TryLater, match="the disk is full"):
        await add_until_refused(opened, [])
    assert await opened.trouble() is Trouble.FULL
    for _ in range(3):
        await asyncio.wait_for(opened.submit(0), PATIENCE)
        assert opened.store.writer.trouble is Trouble.FULL

    ballast.unlink()
    await opened.add()
    assert await opened.trouble() is None
    await opened.store.close()


@sqlite_only
async def test_a_quota_that_is_used_up_is_a_full_disk_and_no_broken_one(
    opened: OpenStore, ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite gives a file that may not grow (EFBIG) and a quota (EDQUOT) the same code."""

    def no_quota_left(*_: object) -> None:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    await opened.add(10)
    with no_larger_files(opened), monkeypatch.context() as patched:
        patched.setattr(os, "posix_fallocate", no_quota_left)
        must = opened.submit(5_000, must_land=True)
        assert "the disk is full" in str(await refusal(opened.submit(5_000)))
        assert await opened.trouble() is Trouble.FULL

    assert len(await asyncio.wait_for(must, PATIENCE)) == 5_000
    assert await opened.trouble() is None
    check(ground)


# ---- read only ---------------------------------------------------------------------------


async def test_a_read_only_database_refuses_new_work_and_keeps_what_must_land(
    opened: OpenStore, ground: Ground
) -> None:
    setting = ("PRAGMA query_only = {}", "SET default_transaction_read_only = {}")
    statement = setting[0] if opened.is_sqlite else setting[1]
    opened.tell(statement.format("on"))
    must = opened.submit(must_land=True)
    assert "the database is read only" in str(await refusal(opened.submit()))
    assert await opened.trouble() is Trouble.READ_ONLY
    if opened.is_sqlite:
        opened.tell(statement.format("off"))
    else:
        opened.end_sessions()

    assert len(await asyncio.wait_for(must, PATIENCE)) == 1
    check(ground)


# ---- damaged -----------------------------------------------------------------------------


async def failed(opened: OpenStore) -> StoreFailed:
    assert opened.store.failed is not None
    with pytest.raises(StoreFailed) as caught:
        await asyncio.wait_for(asyncio.shield(opened.store.failed), PATIENCE)
    return caught.value


@sqlite_only
async def test_a_damaged_file_stops_the_writer_for_good(
    database: Database, clock: FakeClock
) -> None:
    opened = await OpenStore(url_of(database), clock).open()
    await opened.add(2_000)
    await opened.store.close()
    database.close()
    with contextlib.closing(sqlite3.connect(database.path)) as connection:
        named = "SELECT rootpage FROM sqlite_master WHERE name = 'events_job'"
        (page,) = connection.execute(named).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with database.path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    opened = await OpenStore(url_of(database), clock).open()

    answers = [opened.submit(100, must_land=True), opened.submit(100)]
    problem = await failed(opened)

    assert "damaged" in str(problem)
    assert "redrive restore" in problem.hint
    for answer in answers:
        with pytest.raises(StoreFailed):
            await answer
    assert "stopping" in str(await refusal(opened.submit()))
    await opened.store.close()


@sqlite_only
async def test_an_error_of_the_disk_stops_the_writer_for_good(opened: OpenStore) -> None:
    await opened.add(10)
    with no_larger_files(opened):
        future = opened.submit(5_000)
        problem = await failed(opened)

    assert "disk" in str(problem)
    with pytest.raises(StoreFailed):
        await future
    assert await opened.ids() == list(range(1, 11))


async def test_a_file_that_is_no_database_is_refused_in_words(
    tmp_path: Path, clock: FakeClock
) -> None:
    path = tmp_path / "other.db"
    path.write_bytes(b"this is not a database" * 1_000)
    opened = OpenStore(f"sqlite:///{path}", clock)

    with pytest.raises(StoreFailed, match=r"other\.db"):
        await opened.open()
    await opened.store.close()
    assert path.read_bytes() == b"this is not a database" * 1_000


# ---- gone --------------------------------------------------------------------------------


@sqlite_only
async def test_nothing_is_accepted_into_a_file_that_has_vanished(
    opened: OpenStore, ground: Ground
) -> None:
    await opened.add()
    path = opened.store.database.path
    aside = path.with_name("aside.db")
    path.rename(aside)
    waiting = opened.submit()
    assert await opened.trouble() is Trouble.GONE
    assert not waiting.done()
    aside.rename(path)

    assert [place.id for place in await asyncio.wait_for(waiting, PATIENCE)] == [2]
    assert await opened.trouble() is None
    check(ground)


@postgresql_only
async def test_a_cut_connection_is_made_anew_and_no_work_is_lost(
    opened: OpenStore, ground: Ground
) -> None:
    await opened.add()
    opened.end_sessions()

    assert await opened.add() == [2]
    assert await opened.trouble() is Trouble.GONE
    assert await opened.trouble() is None
    check(ground)


@postgresql_only
@pytest.mark.parametrize("committed", [True, False])
async def test_a_commit_that_was_never_answered_is_not_done_twice(
    opened: OpenStore, ground: Ground, committed: bool
) -> None:
    """The connection dies with the commit: only the database knows what became of it."""
    await opened.add()
    engine = opened.store.database.writers
    once = iter([True])

    def die(connection: Any) -> None:
        if next(once, False):
            if committed:
                connection.connection.dbapi_connection.commit()
            opened.end_sessions()

    event.listen(engine, "commit", die)
    placed = await asyncio.wait_for(opened.submit(3), PATIENCE)

    assert [place.id for place in placed] == [2, 3, 4]
    assert await opened.ids() == [1, 2, 3, 4]
    assert [len(landed.events) for landed in opened.landed] == [1, 3]
    check(ground)


async def test_a_server_that_restarts_is_waited_for(clock: FakeClock) -> None:
    with other_server() as server:
        opened = await OpenStore(server.url, clock).open()
        ids = await opened.add(5)
        server.stop()
        must, may = opened.submit(must_land=True), opened.submit()
        assert await opened.trouble() is Trouble.GONE
        server.start()
        ids += [
            place.id for each in (must, may) for place in await asyncio.wait_for(each, PATIENCE)
        ]

        assert await opened.trouble() is None
        assert await opened.ids() == ids
        await opened.store.close()


# ---- the unit of work --------------------------------------------------------------------


@sqlite_only
def test_after_a_full_disk_the_rest_of_the_group_is_not_committed_by_itself(
    ground: Ground, clock: FakeClock
) -> None:
    """SQLite has rolled back by then, and would commit each following statement alone."""
    ground.add()
    with ground.database.writers.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    many = [Entry(enqueue, Order(jobs=[WORK] * n), None, False) for n in (1, 2_000, 1)]

    with pytest.raises(Exception, match="full"):
        ground.commit(many)

    assert ground.counts() == {"queued": 1}
    check(ground)
