from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from redrive.config import Config
from redrive.config.sections import Daemon
from redrive.errors import AlreadyRunning, RedriveError, UsageProblem, WrongState
from redrive.protocol.commands import Backup
from redrived.api.backup import backup
from redrived.api.server import Asker
from redrived.instance_lock import InstanceLock
from redrived.restore import restore
from redrived.store import tallies
from redrived.store.backup import back_up, examine
from redrived.store.enqueue import NewJob, Order, enqueue
from redrived.store.store import Store
from support.clock import FakeClock
from support.databases import postgresql_url
from support.engines import an_engine

ASKER = Asker(role="operator", who="me")


async def fill(store: Store, n: int) -> None:
    await store.submit(enqueue, Order(jobs=[NewJob(task="work", queue="default")] * n))


def jobs_in(store: Path) -> int:
    with closing(sqlite3.connect(store)) as connection:
        return int(connection.execute("SELECT count(*) FROM jobs").fetchone()[0])


async def test_a_backup_is_whole_private_and_one_file(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        await fill(engine.store, 3)
        done = await backup(engine, ASKER, Backup(path=str(tmp_path / "copy.db")))
    assert done.data["jobs"] == 3
    copy = tmp_path / "copy.db"
    assert copy.stat().st_mode & 0o777 == 0o600
    assert examine(copy).seq == 3
    assert not (tmp_path / "copy.db.partial").exists()
    assert not (tmp_path / "copy.db-wal").exists()


async def test_a_backup_taken_while_jobs_arrive_is_of_one_instant(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        await fill(engine.store, 5000)
        path = engine.store.database.path
        copying = asyncio.create_task(asyncio.to_thread(back_up, path, tmp_path / "copy.db"))
        while not copying.done():
            await fill(engine.store, 10)
        copy = copying.result()
    assert copy.jobs >= 5000
    assert copy.jobs == copy.seq  # one event for each
    with closing(sqlite3.connect(tmp_path / "copy.db")) as connection:
        (counted,) = connection.execute("SELECT sum(n) FROM tallies").fetchone()
    assert counted == copy.jobs


async def test_a_backup_replaces_nothing(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        (tmp_path / "copy.db").write_text("mine")
        with pytest.raises(WrongState, match="exists already"):
            await backup(engine, ASKER, Backup(path=str(tmp_path / "copy.db")))
        with pytest.raises(RedriveError, match="cannot be written: No such file"):
            await backup(engine, ASKER, Backup(path=str(tmp_path / "nowhere" / "copy.db")))
        with pytest.raises(UsageProblem, match="relative path"):
            await backup(engine, ASKER, Backup(path="copy.db"))
    assert (tmp_path / "copy.db").read_text() == "mine"


async def test_postgresql_has_its_own_way(tmp_path: Path) -> None:
    async with an_engine(tmp_path, url=postgresql_url()) as engine:
        with pytest.raises(RedriveError, match="PostgreSQL") as refused:
            await backup(engine, ASKER, Backup(path=str(tmp_path / "copy.db")))
    assert "pg_dump" in refused.value.hint


async def test_a_restore_brings_back_the_copy_and_keeps_what_was_there(tmp_path: Path) -> None:
    config = Config(daemon=Daemon(state_dir=str(tmp_path)))
    async with an_engine(tmp_path) as engine:
        await fill(engine.store, 3)
        back_up(engine.store.database.path, tmp_path / "copy.db")
        await fill(engine.store, 4)
    restored = restore(config, tmp_path / "copy.db")
    assert restored.copy.jobs == 3
    assert restored.aside is not None
    assert jobs_in(Path(restored.aside)) == 7
    async with an_engine(tmp_path) as engine:
        assert tallies.by_state(await engine.store.read(tallies.read))["queued"] == 3
        await fill(engine.store, 1)


async def test_a_restore_that_finds_no_room_leaves_the_store_where_it_is(tmp_path: Path) -> None:
    config = Config(daemon=Daemon(state_dir=str(tmp_path)))
    async with an_engine(tmp_path) as engine:
        await fill(engine.store, 3)
        back_up(engine.store.database.path, tmp_path / "copy.db")
        await fill(engine.store, 4)
    (tmp_path / "redrive.db.restoring").mkdir()  # what is in the way of the copy
    with pytest.raises(RedriveError, match="cannot be copied") as refused:
        restore(config, tmp_path / "copy.db")
    assert refused.value.hint.startswith("nothing was changed")
    assert jobs_in(tmp_path / "redrive.db") == 7


async def test_what_was_there_is_kept_by_every_restore_of_a_second(tmp_path: Path) -> None:
    config = Config(daemon=Daemon(state_dir=str(tmp_path)))
    async with an_engine(tmp_path) as engine:
        await fill(engine.store, 3)
        back_up(engine.store.database.path, tmp_path / "copy.db")
        await fill(engine.store, 4)
    kept = [restore(config, tmp_path / "copy.db").aside for _ in range(3)]
    assert len(set(kept)) == 3
    assert [jobs_in(Path(str(path))) for path in kept] == [7, 3, 3]


async def test_a_store_left_by_a_crash_is_kept_with_its_newest_jobs(tmp_path: Path) -> None:
    config = Config(daemon=Daemon(state_dir=str(tmp_path)))
    async with an_engine(tmp_path) as engine:
        await fill(engine.store, 3)
        back_up(engine.store.database.path, tmp_path / "copy.db")
    connection = sqlite3.connect(tmp_path / "redrive.db")
    connection.execute("UPDATE counters SET value = 77 WHERE name = 'seq'")
    connection.commit()
    for suffix in ("", "-wal"):  # as a crash leaves them
        crashed = tmp_path / f"crashed.db{suffix}"
        crashed.write_bytes((tmp_path / f"redrive.db{suffix}").read_bytes())
    connection.close()
    for suffix in ("", "-wal"):
        (tmp_path / f"crashed.db{suffix}").rename(tmp_path / f"redrive.db{suffix}")
    aside = restore(config, tmp_path / "copy.db").aside
    assert aside is not None
    assert examine(Path(aside)).seq == 77


async def test_nothing_is_restored_under_a_running_daemon(tmp_path: Path) -> None:
    lock = InstanceLock(tmp_path)
    lock.take()
    try:
        with pytest.raises(AlreadyRunning) as refused:
            restore(Config(daemon=Daemon(state_dir=str(tmp_path))), tmp_path / "copy.db")
        assert "stop it first" in refused.value.hint
    finally:
        lock.release()


async def test_only_a_whole_store_of_ours_is_restored(tmp_path: Path) -> None:
    config = Config(daemon=Daemon(state_dir=str(tmp_path)))
    store = Store(f"sqlite:///{tmp_path}/redrive.db", FakeClock(), "n1")
    await store.open()
    await fill(store, 2000)
    await store.close()
    whole = (tmp_path / "redrive.db").read_bytes()
    copy = tmp_path / "copy.db"
    for content in (b"no database at all", whole[: len(whole) // 2], b""):
        copy.write_bytes(content)
        with pytest.raises(RedriveError, match=r"damaged|no store of redrive"):
            restore(config, copy)
    with pytest.raises(RedriveError, match="there is no file"):
        restore(config, tmp_path / "nope.db")
    with closing(sqlite3.connect(tmp_path / "redrive.db")) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999_later'")
    with pytest.raises(RedriveError, match="newer redrive"):
        restore(config, tmp_path / "redrive.db")
