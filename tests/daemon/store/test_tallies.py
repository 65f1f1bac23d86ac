"""The counts: kept up by every commit, checked once after every start."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import text

from redrive.filters import parse
from redrive.lifecycle import JobState
from redrived.store import job_pages, redrives, tallies
from redrived.store.actions import Act, act
from redrived.store.database import Database
from redrived.store.enqueue import NewJob
from redrived.store.filtering import where
from redrived.store.promote import promote
from redrived.store.undo import undo
from support.clock import FakeClock
from support.ground import Ground
from support.invariants import check
from support.open_store import PATIENCE, OpenStore, url_of
from support.runs import Track, step


def some_jobs(ground: Ground) -> None:
    for task, queue in (("work", "default"), ("other", "default"), ("work", "bulk")):
        ground.add(*[NewJob(task=task, queue=queue, max_attempts=2)] * 4)
    done, dead, retry, *_ = ground.take(4)
    ground.finish(done)
    ground.fail(dead)
    ground.fail(retry, retry_in=60)


def test_jobs_are_counted_by_queue_task_and_state(ground: Ground) -> None:
    some_jobs(ground)

    counts = ground.ask(tallies.read)
    assert counts == {
        "bulk": {"work": {"done": 1, "dead": 1, "retry": 1, "leased": 1}},
        "default": {"work": {"queued": 4}, "other": {"queued": 4}},
    }
    assert tallies.by_queue(counts)["default"] == {"queued": 8}
    assert ground.ask(tallies.missing) == []
    check(ground)


@pytest.mark.parametrize(
    ("filter", "number"),
    [
        ("", 12),
        ("state:queued", 8),
        ("state:running,retrying,dead", 3),
        ("!state:queued queue:bulk", 4),
        ("task:w* queue:default", 4),
        ("task:work task:other !queue:b*", 8),
        ("queue:none", 0),
        ("state:dead sort:-next", 1),
    ],
)
def test_lists_by_queue_task_and_state_are_counted_without_reading_them(
    ground: Ground, filter: str, number: int
) -> None:
    some_jobs(ground)

    assert tallies.matching(ground.ask(tallies.read), parse(filter)) == number
    clause = where(parse(filter), ground.clock.now(), is_sqlite=ground.database.is_sqlite)
    assert ground.ask(job_pages.count, clause) == number


@pytest.mark.parametrize("filter", ["state:scheduled", "state:dead,held", "id>3", "work", "age>1h"])
def test_what_the_counts_cannot_tell_apart_is_left_to_the_rows(filter: str) -> None:
    assert tallies.matching({"q": {"work": {"dead": 3}}}, parse(filter)) is None


def test_every_state_is_named_also_the_empty_ones(ground: Ground) -> None:
    assert tallies.by_state(ground.ask(tallies.read)) == dict.fromkeys(map(str, JobState), 0)


def test_nodes_count_for_themselves_and_the_sum_is_right(
    database: Database, clock: FakeClock
) -> None:
    """One node enqueues, another finishes: the second one's count goes below zero."""
    first, second = Ground(database, clock, "n1"), Ground(database, clock, "n2")
    first.add()
    second.finish(*second.take())

    assert first.counts() == {"done": 1}
    check(first)


def test_what_waits_for_a_time_or_a_person_is_counted_apart(ground: Ground) -> None:
    later = ground.clock.now() + 60_000_000
    [later_job, held, *_] = ground.add(
        NewJob(task="work", queue="default", available_at=later),
        NewJob(task="work", queue="default", held=True),
        NewJob(task="work", queue="default", max_attempts=2),
    )

    def aside() -> dict[str, int]:
        check(ground)
        return tallies.by_queue(ground.ask(tallies.read_with_waits)[1]).get("default", {})

    assert aside() == {"scheduled": 1, "held": 1}
    ground.do(act, Act(verb="hold", jobs=[later_job.id], by="ann"))
    assert aside() == {"held": 2}
    ground.do(act, Act(verb="release", jobs=[later_job.id, held.id], by="ann"))
    assert aside() == {"scheduled": 1}
    first, second = ground.take(2)
    ground.finish(first)
    ground.fail(second, retry_in=5)
    ground.do(act, Act(verb="hold", jobs=[second.id], by="ann"))
    assert aside() == {"scheduled": 1, "held retry": 1}
    ground.clock.move(61)
    ground.do(promote, 10)
    assert aside() == {"held retry": 1}
    ground.do(act, Act(verb="release", jobs=[second.id], by="ann"))
    assert aside() == {}
    [scheduled] = ground.add(
        NewJob(task="work", queue="default", available_at=ground.clock.now() + 60_000_000)
    )
    assert aside() == {"scheduled": 1}
    ground.do(act, Act(verb="run-now", jobs=[scheduled.id], by="ann"))
    assert aside() == {}


def test_waits_that_were_never_counted_are_found_and_corrected(ground: Ground) -> None:
    """A store of an earlier version knows the states only."""
    ground.add(*[NewJob(task="work", queue="default", held=True)] * 3)
    with ground.database.writers.connect() as connection, connection.begin():
        connection.execute(text("DELETE FROM tallies WHERE state = 'held'"))

    ground.do(tallies.correct, ground.ask(tallies.missing))

    check(ground)


def test_a_queue_that_has_become_empty_is_not_counted(ground: Ground) -> None:
    [placed] = ground.add(NewJob(task="work", queue="bulk"))
    ground.do(act, Act(verb="cancel", jobs=[placed.id], by="ann"))
    ground.do(act, Act(verb="discard", jobs=[placed.id], by="ann"))

    assert ground.ask(tallies.read) == {}


def spoil(ground: Ground) -> None:
    with ground.database.writers.connect() as connection, connection.begin():
        connection.execute(text("UPDATE tallies SET n = n + 5 WHERE state = 'queued'"))
        connection.execute(text("DELETE FROM tallies WHERE state = 'dead'"))
        connection.execute(
            text(
                "INSERT INTO tallies (node, queue, task, state, n) VALUES ('x', 'q', 't', 'done', 3)"
            )
        )


def test_wrong_counts_are_found_and_corrected(ground: Ground) -> None:
    some_jobs(ground)
    spoil(ground)
    missing = ground.ask(tallies.missing)
    assert ("q", "t", "done", -3) in missing
    ground.add()  # work goes on between the counting and the correction

    ground.do(tallies.correct, missing)

    assert ground.ask(tallies.missing) == []
    check(ground)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
async def test_counts_are_checked_after_a_start_while_work_goes_on(
    ground: Ground, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    some_jobs(ground)
    spoil(ground)
    opened = OpenStore(url_of(ground.database), clock)
    corrected = asyncio.Event()
    stray = ("q", "t", "done")
    opened.store.landed.append(lambda landed: corrected.set() if stray in landed.moves else None)
    await opened.open()
    await opened.add()
    await asyncio.wait_for(corrected.wait(), PATIENCE)

    check(ground)
    assert "were wrong and are corrected" in caplog.text
    await opened.store.close()


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
async def test_a_start_with_right_counts_writes_nothing(ground: Ground, clock: FakeClock) -> None:
    some_jobs(ground)
    opened = await OpenStore(url_of(ground.database), clock).open()
    assert await opened.ids() == list(range(1, 13))
    await opened.store.close()

    assert opened.landed == []


def test_a_step_that_lives_again_later_is_counted_as_scheduled(ground: Ground) -> None:
    track = Track(ground, step("a"), step("b", delay=900.0))
    run = track.start()
    track.finish("a")
    ground.clock.move(901)
    track.promote()
    track.fail("b")
    assert ground.ask(tallies.missing) == []

    track.requeue(run, from_step="a", again=True)
    track.finish("a")

    assert ground.ask(tallies.read_with_waits)[1] == {"default": {"work": {"scheduled": 1}}}
    assert ground.ask(tallies.missing) == []


def test_a_redrive_that_is_undone_takes_what_was_held_meanwhile_with_it(ground: Ground) -> None:
    [placed] = ground.add()
    ground.fail(*ground.take())
    chosen = ground.do(redrives.create, redrives.NewRedrive(by="ann"))
    assert chosen.id is not None
    ground.do(redrives.requeue_portion, redrives.Portion(redrive=chosen.id, n=1, by="ann"))
    ground.do(act, Act(verb="hold", jobs=[placed.id], by="ann"))

    ground.do(undo, (chosen.id, "ann"))

    assert ground.ask(tallies.read_with_waits) == ({"default": {"work": {"dead": 1}}}, {})
