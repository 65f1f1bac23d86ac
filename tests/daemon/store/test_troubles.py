"""Each trouble of a database ends the unit of work and has the consequence the writer names."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from redrived.store import events, writer
from redrived.store.database import Database, Trouble
from redrived.store.writer import StoreFailed
from support.clock import FakeClock
from support.databases import other_server
from support.ground import Ground
from support.invariants import check
from support.open_store import PATIENCE, OpenStore, refusal, url_of

sqlite_only = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
postgresql_only = pytest.mark.parametrize("database", ["postgresql"], indirect=True)


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


async def damaged(database: Database, clock: FakeClock, root: str) -> OpenStore:
    """A store with jobs, and where a table or an index of it began there is nothing of the kind."""
    opened = await OpenStore(url_of(database), clock).open()
    await opened.add(2_000)
    await opened.store.close()
    database.close()
    with contextlib.closing(sqlite3.connect(database.path)) as connection:
        named = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        (page,) = connection.execute(named, (root,)).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with database.path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    return await OpenStore(url_of(database), clock).open()


@sqlite_only
async def test_a_damaged_file_stops_the_writer_for_good(
    database: Database, clock: FakeClock
) -> None:
    opened = await damaged(database, clock, "events_job")

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
async def test_whoever_meets_damage_with_a_question_is_not_told_to_try_later(
    database: Database, clock: FakeClock
) -> None:
    opened = await damaged(database, clock, "events")

    with pytest.raises(StoreFailed, match="database file is damaged") as told:
        await opened.store.read(events.after, 0, 10)
    assert "redrive restore" in told.value.hint
    await opened.store.close()


@sqlite_only
async def test_an_error_of_the_disk_stops_the_writer_for_good(opened: OpenStore) -> None:
    await opened.add(10)
    with opened.no_larger_files():
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
    assert await opened.trouble() is Trouble.MISSING
    words = opened.store.writer.trouble_in_words
    assert words == f"{path} is missing, or is another file by now: move it back, or restart"
    assert not waiting.done()
    aside.rename(path)

    assert [place.id for place in await asyncio.wait_for(waiting, PATIENCE)] == [2]
    assert await opened.trouble() is None
    check(ground)


async def test_a_folder_that_cannot_be_looked_into_is_waited_for_too(
    tmp_path: Path, clock: FakeClock
) -> None:
    folder = tmp_path / "state"
    opened = await OpenStore(f"sqlite:///{folder}/redrive.db", clock).open()
    await opened.add()
    aside = folder.rename(tmp_path / "aside")
    folder.touch()  # no longer a folder, so that there is more wrong than a missing file
    waiting = opened.submit(must_land=True)
    assert await opened.trouble() is Trouble.MISSING
    folder.unlink()
    aside.rename(folder)

    assert [place.id for place in await asyncio.wait_for(waiting, PATIENCE)] == [2]
    await opened.store.close()


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
