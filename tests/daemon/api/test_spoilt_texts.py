"""A row that holds what is no text, in SQLite: nobody is denied the others for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from sqlalchemy import Text

from redrive.protocol import codec
from redrive.protocol.envelope import Reply
from redrive.protocol.queries import ListJobs, Status
from redrived.api import jobs, status
from redrived.engine.engine import Engine
from redrived.store import tables
from redrived.store.enqueue import NewJob, Order, enqueue
from redrived.store.leases import lease
from redrived.store.picking import Room, TaskRules
from redrived.store.unit import Unit
from support.engine import TESTER
from support.engines import an_engine

NO_UTF8, NO_TEXT = "CAST(x'ff' AS TEXT)", "x'ff'"
COLUMNS = [column.name for column in tables.jobs.columns if isinstance(column.type, Text)]


def spoil(unit: Unit, changes: Sequence[str]) -> list[None]:
    for change in changes:
        unit.execute(f"UPDATE jobs SET {change} WHERE id = 2")
    return [None for _ in changes]


@pytest.fixture(params=[NO_UTF8, NO_TEXT])
async def engine(
    tmp_path: Path, column: str, request: pytest.FixtureRequest
) -> AsyncIterator[Engine]:
    """With three jobs, the second of them spoilt before its start, and the counts checked."""
    async with an_engine(tmp_path) as earlier:
        new = NewJob(task="work", queue="default")
        await earlier.store.submit(enqueue, Order(jobs=[new] * 3))
        await earlier.store.submit(spoil, f"{column} = {request.param}")
    async with an_engine(tmp_path) as engine:
        await asyncio.wait([task for task in asyncio.all_tasks() if task.get_name() == "counts"])
        yield engine


def arrives(reply: Reply) -> bool:
    return codec.decode_as(type(reply), codec.encode_told(reply)) == reply


@pytest.mark.parametrize("column", COLUMNS)
async def test_lists_show_the_others(engine: Engine) -> None:
    for where in ("", "id>0", "sort:next"):
        page = await jobs.list_jobs(engine, TESTER, ListJobs(where=where, count=True))

        assert arrives(page)
        assert {1, 3} <= {job.id for job in page.jobs}


@pytest.mark.parametrize("column", COLUMNS)
async def test_others_are_leased(engine: Engine) -> None:
    leased = await engine.store.submit(lease, Room(slots=3, tasks={"work": TaskRules()}))

    assert {1, 3} <= {job.id for job in leased.picked.jobs()}


@pytest.mark.parametrize("column", COLUMNS)
async def test_the_status_is_told(engine: Engine) -> None:
    assert arrives(await status.status(engine, TESTER, Status()))


@pytest.mark.parametrize("column", ["unique_key"])
async def test_the_log_says_that_there_is_such_a_text(
    engine: Engine, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    await jobs.list_jobs(engine, TESTER, ListJobs())

    was_said = "the store has text that is no UTF-8" in caplog.text
    assert was_said == (request.node.callspec.params["engine"] == NO_UTF8)
