"""Reading: pages that miss nothing, snapshots that hold, readers that neither wait nor write."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from redrive.errors import UsageProblem
from redrived.store import events, job_pages
from redrived.store.enqueue import NewJob
from redrived.store.job_pages import Page
from support.clock import FakeClock
from support.ground import Ground
from support.open_store import OpenStore

SORTS = ("id", "next", "priority", "attempt", "age", "finished", "task", "queue", "state")


def some_of_everything(ground: Ground, clock: FakeClock) -> list[int]:
    """Jobs in every state, with many equal values in every column that pages are sorted by."""
    for n in range(24):
        clock.move(n % 2)
        ground.add(
            NewJob(
                task=("work", "other")[n % 2],
                queue=("default", "bulk", "Ärger")[n % 3],
                priority=n % 3,
                max_attempts=3,
                available_at=clock.now() + (n % 4) * 1_000_000,
            )
        )
    for n, job in enumerate(ground.take(5)):
        match n:
            case 0 | 1:
                ground.finish(job)
            case 2:
                ground.fail(job)
            case 3:
                ground.fail(job, retry_in=5)
            case _:
                pass
    return list(range(1, 25))


@pytest.mark.parametrize("direction", ["", "-"])
@pytest.mark.parametrize("sort", SORTS)
def test_pages_show_every_job_once_in_the_order_of_the_sort(
    ground: Ground, clock: FakeClock, sort: str, direction: str
) -> None:
    everything = some_of_everything(ground, clock)
    whole = ground.ask(job_pages.page, None, sort=direction + sort, limit=100)
    assert whole.after is None

    seen: list[int] = []
    after: str | None = None
    for _ in everything:
        page: Page = ground.ask(job_pages.page, None, sort=direction + sort, limit=5, after=after)
        seen += [job.id for job in page.jobs]
        after = page.after
        if after is None:
            break

    assert seen == [job.id for job in whole.jobs]
    assert sorted(seen) == everything


@pytest.mark.parametrize("direction", ["", "-"])
@pytest.mark.parametrize("sort", SORTS)
def test_a_jump_leads_to_the_same_page_from_whichever_end_it_is_counted(
    ground: Ground, clock: FakeClock, sort: str, direction: str
) -> None:
    total = len(some_of_everything(ground, clock))
    whole: Page = ground.ask(job_pages.page, None, sort=direction + sort, limit=100)
    for offset in (0, 5, 12, 13, 18, 19, 20, 23, 24, 30):
        page: Page = ground.ask(
            job_pages.page, None, sort=direction + sort, limit=5, offset=offset, total=total
        )
        assert page.jobs == whole.jobs[offset : offset + 5]
        assert (page.after is None) == (offset + 5 >= total)


def test_what_has_not_ended_comes_before_what_has(ground: Ground) -> None:
    waiting, done, done_later = (place.id for place in ground.add(*_jobs(3, held=False)))
    hand = {job.id: job for job in ground.take(3)}
    for id in (done, done_later):
        ground.clock.move(1)
        ground.finish(hand[id])

    newest_first = ground.ask(job_pages.page, None, sort="-finished")
    assert [job.id for job in newest_first.jobs] == [done_later, done, waiting]


def _jobs(n: int, **more: Any) -> list[NewJob]:
    return [NewJob(task="work", queue="default", **more)] * n


@pytest.mark.parametrize("after", ["", "x", "[1]", "[1, 2, 3]", '["x", "y"]', "null", '["a", 1]'])
def test_a_cursor_that_makes_no_sense_is_refused(ground: Ground, after: str) -> None:
    with pytest.raises(UsageProblem, match="cannot be read"):
        ground.ask(job_pages.page, None, sort="priority", after=after)


def test_a_sort_nobody_knows_is_refused_with_those_there_are(ground: Ground) -> None:
    with pytest.raises(UsageProblem, match="sorted by 'args'") as caught:
        ground.ask(job_pages.page, None, sort="-args")
    assert "priority" in caught.value.hint


def test_a_page_and_its_seq_are_of_one_instant(ground: Ground) -> None:
    """A console applies what comes after the seq: were it newer than the rows, it would miss."""
    ground.add(*_jobs(2))
    with ground.database.readers.connect() as connection, connection.begin():
        before = job_pages.count(connection, None)
        ground.add(*_jobs(3))
        page = job_pages.page(connection, None)
        assert (len(page.jobs), page.as_of) == (before, before) == (2, 2)
        assert events.head(connection) == 2

    assert ground.ask(events.head) == 5


def test_readers_do_not_wait_for_the_writer(ground: Ground) -> None:
    ground.add()
    answers: list[int] = []
    with ground.database.writers.connect() as connection, connection.begin():
        connection.execute(text("UPDATE jobs SET priority = 9"))
        reader = threading.Thread(target=lambda: answers.append(ground.job(1).priority))
        reader.start()
        reader.join(10)
        assert answers == [0]

    assert ground.job(1).priority == 9


def test_the_writer_does_not_wait_for_readers(ground: Ground) -> None:
    ground.add()
    with ground.database.readers.connect() as connection, connection.begin():
        assert job_pages.count(connection, None) == 1
        ground.add()
        assert job_pages.count(connection, None) == 1


@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM jobs", "UPDATE jobs SET priority = 1", "CREATE TABLE mine (n INTEGER)"],
)
def test_readers_cannot_write(ground: Ground, statement: str) -> None:
    ground.add()
    with pytest.raises(DBAPIError), ground.database.readers.connect() as connection:
        connection.execute(text(statement))
    assert ground.job(1).priority == 0


async def test_a_question_that_fails_leaves_the_store_as_it_was(
    tmp_path: Path, clock: FakeClock
) -> None:
    opened = await OpenStore(f"sqlite:///{tmp_path}/redrive.db", clock).open()

    def fail(connection: Connection) -> None:
        connection.execute(text("SELECT nothing FROM nowhere"))

    for _ in range(10):  # more often than there are connections
        with pytest.raises(DBAPIError):
            await opened.store.read(fail)
    assert await opened.add() == await opened.ids()
    await opened.store.close()


async def test_nobody_else_may_read_the_files_of_a_store(tmp_path: Path, clock: FakeClock) -> None:
    before = os.umask(0)
    try:
        opened = await OpenStore(f"sqlite:///{tmp_path}/state/redrive.db", clock).open()
        await opened.add()
    finally:
        os.umask(before)

    folder = opened.store.database.path.parent
    modes = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
    assert modes == {"redrive.db": 0o600, "redrive.db-shm": 0o600, "redrive.db-wal": 0o600}
    assert folder.stat().st_mode & 0o777 == 0o700
    await opened.store.close()


async def test_a_long_look_does_not_keep_the_log_growing_afterwards(
    tmp_path: Path, clock: FakeClock
) -> None:
    opened = await OpenStore(f"sqlite:///{tmp_path}/redrive.db", clock).open()
    opened.tell("PRAGMA wal_autocheckpoint = 100")
    wal = opened.store.database.path.with_name("redrive.db-wal")
    await opened.add()
    with opened.store.database.readers.connect() as connection, connection.begin():
        assert job_pages.count(connection, None) == 1
        await opened.add(10_000)
    await opened.add(1_000)
    grown = wal.stat().st_size
    for _ in range(5):
        await opened.add(1_000)

    assert wal.stat().st_size == grown
    await opened.store.close()
    assert not wal.exists()
