from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest
from sqlalchemy import Connection, Table, Text, insert, text

from redrive.clock import SECOND
from redrive.lifecycle import JobState
from redrive.protocol.rows import BatchRow
from redrived.store import batch_pages, nodes, retention, tables, tallies
from redrived.store.connections import LOG_SIZE
from redrived.store.database import Database
from redrived.store.enqueue import NewJob
from redrived.store.ledger import Claim, claim
from redrived.store.nodes import NodeBeat, NodeFacts
from redrived.store.retention import Ended, Forgotten, Old
from redrived.store.unit import Unit
from support.clock import FakeClock
from support.ground import Ground
from support.invariants import check
from support.runs import Track, step

DAY = 86400.0
A_BEAT = NodeBeat(state="up", started_at=1, version="1", slots=8, facts=NodeFacts(pid=1))


def ended_before(ground: Ground, state: str = "done", days: float = 7) -> Ended:
    return Ended(state, 0, ground.clock.now() - round(days * DAY * SECOND))


def tables_with_rows(ground: Ground) -> set[str]:
    def look(connection: Connection) -> set[str]:
        names = ("jobs", "events", "ledger", "runs", "steps", "batches", "gates")
        return {
            name
            for name in names
            if connection.execute(text(f"SELECT count(*) FROM {name}")).scalar_one()
        }

    return ground.ask(look)


def integrity(connection: Connection) -> str:
    return str(connection.execute(text("PRAGMA integrity_check")).scalar_one())


class Row(NamedTuple):
    table: Table
    said: dict[str, object]


def put(unit: Unit, rows: Sequence[Row]) -> list[None]:
    """Rows of which only what matters is said."""
    for table, said in rows:
        needed = {
            column.name: "" if isinstance(column.type, Text) else 0
            for column in table.columns
            if not column.nullable
        }
        unit.execute(insert(table).values(**{**needed, **said}))
    return [None] * len(rows)


def join_run(unit: Unit, ids: Sequence[int]) -> list[None]:
    for id in ids:
        unit.execute("UPDATE jobs SET run_id = 7 WHERE id = :id", id=id)
    return [None] * len(ids)


async def test_a_finished_job_goes_with_its_events_and_its_notes(
    ground: Ground, clock: FakeClock
) -> None:
    ground.add()
    (job,) = ground.take()
    ground.do(claim, Claim(f"job:{job.id}", "mail"))
    ground.finish(job)
    clock.move(8 * DAY)
    assert ground.do(retention.forget_jobs, ended_before(ground)) == Forgotten(1, [job.id])
    assert tables_with_rows(ground) == set()
    assert ground.counts() == {}


async def test_what_is_young_waiting_or_dead_stays(ground: Ground, clock: FakeClock) -> None:
    ground.add(*[NewJob(task="work", queue="default")] * 4)
    dead, done, _ = ground.take(3)
    ground.fail(dead)
    clock.move(8 * DAY)
    ground.finish(done)
    assert ground.do(retention.forget_jobs, ended_before(ground)) == Forgotten()
    assert ground.counts() == {"dead": 1, "done": 1, "leased": 1, "queued": 1}


async def test_dead_jobs_go_when_they_are_asked_for(ground: Ground, clock: FakeClock) -> None:
    ground.add()
    (job,) = ground.take()
    ground.fail(job)
    clock.move(8 * DAY)
    assert ground.do(retention.forget_jobs, ended_before(ground, "dead")).jobs == [job.id]


async def test_one_chunk_at_most_is_forgotten_at_once(
    ground: Ground, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "CHUNK", 2)
    ground.add(*[NewJob(task="work", queue="default")] * 3)
    for job in ground.take(3):
        ground.finish(job)
    clock.move(8 * DAY)
    wish = ended_before(ground)
    assert [ground.do(retention.forget_jobs, wish).n for _ in range(3)] == [2, 1, 0]


async def test_a_job_of_a_run_stays_until_the_run_goes(ground: Ground, clock: FakeClock) -> None:
    ground.add()
    (job,) = ground.take()
    ground.finish(job)
    ground.do(join_run, job.id)
    ground.do(claim, Claim("run:7", "mail"))
    run: dict[str, object] = {"id": 7, "state": "done", "batch": "b", "finished_at": clock.now()}
    ground.do(put, Row(tables.runs, run))
    ground.do(put, Row(tables.steps, {"run_id": 7, "name": "s", "job": job.id}))
    ground.do(put, Row(tables.batches, {"name": "b"}))
    ground.do(put, Row(tables.gates, {"batch": "b"}))
    clock.move(8 * DAY)
    assert ground.do(retention.forget_jobs, ended_before(ground)) == Forgotten()
    assert ground.do(retention.forget_runs, ended_before(ground)) == Forgotten(1, [job.id])
    assert tables_with_rows(ground) == set()
    assert ground.counts() == {}


def test_a_batch_keeps_the_counts_of_the_runs_it_has_forgotten(
    ground: Ground, clock: FakeClock
) -> None:
    track = Track(ground, step("request"))
    track.start_many(3, batch="b")
    first, second, third = ground.take(3)
    track.complete([first, second])
    track.fail_job(third)
    clock.move(8 * DAY)

    def batch() -> BatchRow | None:
        return next(iter(ground.ask(batch_pages.batch_rows)), None)

    assert ground.do(retention.forget_runs, ended_before(ground)).n == 2
    row = batch()
    assert row is not None
    assert (row.runs, row.done, row.failed, row.forgotten) == (3, 2, 1, 2)
    assert row.phases == {"request": {"done": 2, "dead": 1}}
    assert [run.id for run in track.page("batch:b").runs] == ["r3"]

    assert ground.do(retention.forget_runs, ended_before(ground, "failed")).n == 1
    assert batch() is None


async def test_events_of_no_job_go_by_their_age(ground: Ground, clock: FakeClock) -> None:
    def say(unit: Unit, kinds: Sequence[str]) -> list[None]:
        for kind in kinds:
            unit.emit(kind)
        return [None] * len(kinds)

    ground.add()
    ground.do(say, "node_started")
    clock.move(31 * DAY)
    ground.do(say, "config_reloaded")
    old = Old(0, clock.now() - round(30 * DAY * SECOND))
    assert ground.do(retention.forget_events, old) == 1
    assert [event.type for event in ground.events()] == ["step_started", "config_reloaded"]


async def test_slots_redrives_receipts_and_starts_go_by_their_age(ground: Ground) -> None:
    for at in (1, 9):
        ground.do(put, Row(tables.slots, {"slot": at, "at": at}))
        ground.do(put, Row(tables.redrives, {"id": at, "finished_at": at}))
        ground.do(put, Row(tables.redrive_jobs, {"redrive": at}))
        ground.do(put, Row(tables.receipts, {"id": at, "at": at}))
        ground.do(put, Row(tables.starts, {"at": at}))
    assert ground.do(retention.forget_traces, 5) == 3
    assert ground.do(retention.forget_receipts, 5) == 1
    assert ground.do(retention.forget_starts, 5) == 1
    assert ground.do(retention.forget_traces, 5) == 0


def two_nodes(database: Database, clock: FakeClock) -> tuple[Ground, Ground]:
    one, two = Ground(database, clock, "one"), Ground(database, clock, "two")
    for each in (one, two):
        each.do(nodes.arrive, A_BEAT)
    return one, two


def forgotten_by(ground: Ground) -> int:
    """It has beaten all the time."""
    ground.do(nodes.beat, A_BEAT)
    return ground.do(retention.forget_nodes, round(7 * DAY * SECOND))


def names(ground: Ground) -> list[str]:
    return [row.name for row in ground.ask(nodes.rows)]


def counting(connection: Connection) -> set[str]:
    return set(connection.execute(text("SELECT node FROM tallies")).scalars())


def test_a_node_that_is_gone_is_forgotten_and_what_it_counted_counts_on(
    database: Database, clock: FakeClock
) -> None:
    one, two = two_nodes(database, clock)
    two.add(*[NewJob(task="work", queue="default")] * 3, NewJob(task="work", queue="q", held=True))
    one.finish(*one.take())
    counts = one.ask(tallies.read_with_waits)
    clock.move(8 * DAY)

    assert forgotten_by(one) == 4

    assert names(one) == ["one"]
    assert one.ask(counting) == {"one"}
    assert one.ask(tallies.read_with_waits) == counts
    check(one)
    assert forgotten_by(one) == 0


def test_a_node_that_was_forgotten_may_come_back(database: Database, clock: FakeClock) -> None:
    one, two = two_nodes(database, clock)
    two.add()
    clock.move(8 * DAY)
    forgotten_by(one)

    assert two.do(nodes.beat, A_BEAT) is None
    two.finish(*two.take())

    assert names(one) == ["one", "two"]
    assert one.counts() == {"done": 1}
    assert forgotten_by(one) == 0
    check(one)


def test_a_node_that_still_holds_a_job_or_was_there_of_late_is_not_forgotten(
    database: Database, clock: FakeClock
) -> None:
    one, two = two_nodes(database, clock)
    one.add()
    (job,) = two.take()
    clock.move(6 * DAY)
    assert forgotten_by(one) == 0
    clock.move(2 * DAY)
    assert forgotten_by(one) == 0
    assert names(one) == ["one", "two"]

    two.fail(job)
    forgotten_by(one)

    assert names(one) == ["one"]
    assert one.counts() == {"dead": 1}


async def test_the_file_shrinks_once_its_rows_are_gone(
    database: Database, ground: Ground, clock: FakeClock
) -> None:
    if not database.is_sqlite:
        pytest.skip("PostgreSQL gives its space back by itself")
    ground.add(*[NewJob(task="work", queue="default", args='"' + "x" * 2000 + '"')] * 3000)
    for job in ground.take(3000):
        ground.finish(job)
    clock.move(8 * DAY)
    while database.tidy():
        pass
    before = database.path.stat().st_size
    while ground.do(retention.forget_jobs, ended_before(ground)).n:
        pass
    rounds = 1
    while database.tidy():
        rounds += 1
    assert rounds < 20  # or a large file would take days
    assert database.path.stat().st_size < before / 2
    ground.add()
    assert database.path.with_name(f"{database.path.name}-wal").stat().st_size == LOG_SIZE
    assert ground.ask(integrity) == "ok"


async def test_a_reader_never_keeps_the_writer_waiting(database: Database, ground: Ground) -> None:
    if not database.is_sqlite:
        pytest.skip("only SQLite moves its log into a file")
    while database.tidy():
        pass
    with database.readers.connect() as connection, connection.begin():
        connection.execute(text("SELECT count(*) FROM jobs"))
        ground.add()
        assert database.tidy() is False
    assert ground.counts() == {JobState.QUEUED: 1}
