"""Runs are found by the filter language: the store finds what `row_matches` says one means."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection, select

from redrive.errors import UsageProblem
from redrive.filters import parse, row_matches
from redrived.store import tables
from redrived.store.run_filtering import RUNS, where
from support.clock import FakeClock
from support.ground import Ground
from support.runs import Track, step

ALL = ["r4", "r3", "r2", "r1"]


@pytest.fixture
def track(ground: Ground, clock: FakeClock) -> Track:
    """One failed, one cancelled, and two hours later one that is done and one that runs."""
    track = Track(ground, step("parse"))
    track.start(batch="G1", key="K1")
    track.fail("parse")
    track.start(batch="a b ü", key="other")
    track.cancelled(track.take("parse"))
    clock.move(7200.5)
    track.start()
    track.finish("parse")
    track.start(batch="G2", key="K%_2")
    return track


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", ALL),
        ("pipeline:p", ALL),
        ("pipeline:p*", ALL),
        ("pipeline:P*", []),
        ("batch:G*", ["r4", "r1"]),
        ("batch:G1", ["r1"]),
        ("batch:G1,G2", ["r4", "r1"]),
        ("batch:G1 batch:a*", ["r2", "r1"]),
        ('batch:"a b ü"', ["r2"]),
        ("batch:*", ["r4", "r2", "r1"]),
        ("!batch:G*", ["r3", "r2"]),
        ("key:K*", ["r4", "r1"]),
        ("key:K%*", ["r4"]),
        ("key=other", ["r2"]),
        ("state:failed state:cancelled", ["r2", "r1"]),
        ("state:failed,cancelled", ["r2", "r1"]),
        ("!state:done", ["r4", "r2", "r1"]),
        ("!state:done !state:running", ["r2", "r1"]),
        ("state:failed batch:G2", []),
        ("age>1h", ["r2", "r1"]),
        ("age<=1h", ["r4", "r3"]),
        ("age:2h", ["r2", "r1"]),
        ("k", ["r4", "r1"]),
        ("%_", ["r4"]),
        ("!other", ["r4", "r3", "r1"]),
    ],
)
def test_runs_are_found_by_the_language_of_all_filters(
    track: Track, clock: FakeClock, text: str, ids: list[str]
) -> None:
    assert [run.id for run in track.page(text).runs] == ids
    filter = parse(text, RUNS)
    runs = track.page().runs
    assert [run.id for run in runs if row_matches(filter, run, "key", clock.now())] == ids


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("colour:red", "it is one of pipeline, state, batch, key, age"),
        ("!colour:red", "unknown key `colour`"),
        ("priority>1", "it is one of pipeline, state, batch, key, age"),
        ("arg.x:1", "unknown key `arg.x`"),
        ("sort:age", "unknown key `sort`"),
        ("state:failed,nope", "`nope` is no value of `state`; it is one of running, done, failed"),
        ("state>done", "`state` cannot be compared"),
        ("age>soon", "`age` takes a time"),
        ('batch:"a', "this quote is never closed"),
    ],
)
def test_what_runs_cannot_be_asked_is_refused_with_what_they_can(
    track: Track, text: str, problem: str
) -> None:
    with pytest.raises(UsageProblem) as refused:
        track.page(text)
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("batch:G1", "runs_batch"),
        ("batch:G*", "runs_batch"),
        ("batch:G1 state:failed", "runs_batch"),
        ("pipeline:p key:K1", "runs_key"),
        ("pipeline:p key:K*", "runs_key"),
    ],
)
def test_an_index_finds_runs_by_batch_and_by_key(track: Track, text: str, index: str) -> None:
    if not track.ground.database.is_sqlite:
        pytest.skip("so few rows are read whole there")

    def plan(connection: Connection) -> str:
        found = select(tables.runs.c.id).where(where(parse(text, RUNS), 0, is_sqlite=True))
        asked = str(found.compile(connection, compile_kwargs={"literal_binds": True}))
        rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {asked}")
        return "\n".join(row[-1] for row in rows)

    assert index in track.ground.ask(plan)
