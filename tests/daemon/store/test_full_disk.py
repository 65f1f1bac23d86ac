"""A full disk stops work for a while, loses nothing, and ends by itself."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from redrive.errors import TryLater
from redrived.store.database import Database, Trouble
from redrived.store.enqueue import Order, enqueue
from redrived.store.group import Entry
from support.clock import FakeClock
from support.ground import Ground
from support.invariants import check
from support.open_store import PATIENCE, WORK, OpenStore, refusal

sqlite_only = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


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
    with opened.no_larger_files(), monkeypatch.context() as patched:
        patched.setattr(os, "posix_fallocate", no_quota_left)
        must = opened.submit(5_000, must_land=True)
        assert "the disk is full" in str(await refusal(opened.submit(5_000)))
        assert await opened.trouble() is Trouble.FULL

    assert len(await asyncio.wait_for(must, PATIENCE)) == 5_000
    assert await opened.trouble() is None
    check(ground)


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
