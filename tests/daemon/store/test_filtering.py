"""The store finds what `matches` says a filter means."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import insert, select
from sqlalchemy.engine import Connection

from redrive.filters import Filter, matches, parse
from redrive.models import ErrorRecord, Job
from redrived.store import tables
from redrived.store.filtering import where
from support.databases import database
from support.filter_strategies import NOW, filters, jobs


def row(job: Job) -> dict[str, Any]:
    encode = msgspec.json.encode
    return {
        "id": job.id,
        "task": job.task,
        "queue": job.queue,
        "operation": job.operation,
        "mode": job.mode,
        "priority": job.priority,
        "rank": 0,
        "state": job.state.value,
        "waits": tables.HELD if job.held else None,
        "reason": job.reason,
        "attempts": job.attempts,
        "max_attempts": 1,
        "life": 1,
        "lease": 0,
        "executions": 0,
        "available_at": job.available_at,
        "created_at": job.created_at,
        "life_started_at": job.created_at,
        "started_at": job.started_at,
        "finished_at": job.finished_at,
        "node": job.node,
        "lost": 0,
        "unknowns": 0,
        "manual_retries": 0,
        "interruptions": 0,
        "snoozes": 0,
        "run_id": int(job.run[1:]) if job.run else None,
        "step": job.step,
        "batch": job.batch,
        "unique_key": job.unique,
        "error_type": job.error.error_type if job.error else None,
        "fingerprint": job.error.fingerprint if job.error else None,
        "args": encode(job.args).decode(),
        "error": encode(job.error).decode() if job.error else None,
    }


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def connection(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Connection]:
    folder = tmp_path_factory.mktemp("filtering")
    with database(request.param, folder) as made, made.writers.connect() as connection:
        yield connection


def found(connection: Connection, filter: Filter, job: Job) -> bool:
    """Whether the store, holding this job only, finds it."""
    condition = where(filter, NOW, is_sqlite=connection.dialect.name == "sqlite")
    try:
        connection.execute(insert(tables.jobs), row(job))
        return connection.execute(select(tables.jobs.c.id).where(condition)).first() is not None
    finally:
        connection.rollback()


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(filter=filters, job=jobs())
def test_the_store_finds_a_job_exactly_when_the_filter_matches_it(
    connection: Connection, filter: Filter, job: Job
) -> None:
    assert found(connection, filter, job) is matches(filter, job, NOW)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(filter=filters.filter(lambda filter: bool(filter.terms)), job=jobs(), data=st.data())
def test_every_term_alone_finds_the_same_jobs(
    connection: Connection, filter: Filter, job: Job, data: st.DataObject
) -> None:
    alone = Filter(terms=(data.draw(st.sampled_from(filter.terms)),))
    assert found(connection, alone, job) is matches(alone, job, NOW)


@pytest.mark.parametrize(
    "text", ["arg.to:x*", "arg.to:x", "arg.n:1", "behind", "gone", "!behind", "error:odd"]
)
def test_a_nul_in_what_a_job_holds_hides_neither_the_job_nor_others(
    connection: Connection, text: str
) -> None:
    error = ErrorRecord(error_type="odd", category="unknown", message="before\0behind")
    args = {"to": "x\0y", "n\0": 2, "n": 1}
    job = Job(id=1, task="t", queue="q", available_at=0, args=args, error=error)
    assert found(connection, parse(text), job) is matches(parse(text), job, NOW)


def test_amounts_beyond_a_column_are_compared_not_refused(connection: Connection) -> None:
    job = Job(id=1, task="t", queue="q", available_at=0)
    for text in ("attempt:999999999999999999", "priority>999999999999999999"):
        assert not found(connection, parse(text), job)


@pytest.mark.parametrize(
    "text",
    [
        "id:" + "2," * 499 + "1",
        "age:" + "2," * 499 + "1",
        "error:" + "x," * 499 + "x",
        "arg.x:" + "1," * 499 + "1",
        "t " * 100,
        "!queue:x " * 100,
        "!attempt:" + "5," * 499 + "1",
    ],
)
def test_a_filter_as_large_as_the_language_allows_can_be_run(
    connection: Connection, text: str
) -> None:
    job = Job(id=1, task="t", queue="q", available_at=0)
    assert found(connection, parse(text), job) is matches(parse(text), job, NOW)
