"""How jobs come in: ids, unique keys, and orders that are stored whole or not at all."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import text

from redrive.lifecycle import JobState
from redrived.store.database import Database
from redrived.store.enqueue import NewJob, Order, Placed, enqueue
from redrived.store.group import Entry
from redrived.store.settle import complete
from redrived.store.tables import jobs
from redrived.store.unit import Unit
from support.clock import FakeClock
from support.ground import Ground


def job(**more: object) -> NewJob:
    return NewJob(**{"task": "work", "queue": "default", **more})  # type: ignore[arg-type]


def entry(*new: NewJob) -> Entry[Order, list[Placed]]:
    return Entry(enqueue, Order(jobs=new, by="ann"), None, must_land=False)


def test_ids_are_small_integers_in_the_order_asked(ground: Ground) -> None:
    first, second = ground.commit([entry(job(), job()), entry(job())])

    assert [place.id for place in first + second] == [1, 2, 3]
    assert [place.id for place in ground.add()] == [4]


def test_a_job_begins_its_life_with_one_event_that_says_who_asked(ground: Ground) -> None:
    [[placed]] = ground.commit([entry(job())])

    [event] = ground.events(placed.id)
    assert (event.type, event.state, event.attempts) == ("step_started", "queued", 0)
    assert event.data == {"by": "ann"}
    assert ground.counts() == {"queued": 1}
    assert ground.landed[-1].made_ready


def test_a_living_unique_key_makes_no_second_job(ground: Ground) -> None:
    [[first]] = ground.commit([entry(job(unique="a"))])
    [again] = ground.add(job(unique="a"))

    assert first.created
    assert again == Placed(first.id, JobState.QUEUED, created=False)
    [held] = ground.take()
    assert ground.add(job(unique="a")) == [Placed(first.id, JobState.LEASED, created=False)]
    ground.finish(held)
    assert ground.add(job(unique="a"))[0].created


def test_a_unique_key_counts_within_one_order_and_one_group(ground: Ground) -> None:
    first, second = ground.commit(
        [entry(job(unique="a"), job(unique="a")), entry(job(unique="b"), job(unique="a"))]
    )

    assert [place.created for place in first + second] == [True, False, True, False]
    assert first[0].id == first[1].id == second[1].id
    assert ground.counts() == {"queued": 2}


def test_an_empty_unique_key_is_a_key_like_any_other(ground: Ground) -> None:
    [first, second] = ground.add(job(unique=""), job(unique=""))

    assert first.id == second.id


def test_an_order_without_jobs_is_answered_without_any(ground: Ground) -> None:
    assert ground.commit([entry(), entry(job())])[0] == []


def test_an_order_is_stored_whole_or_not_at_all(ground: Ground) -> None:
    bad = job(task=None)
    good, failed = ground.commit([entry(job()), entry(job(), bad, job())])

    assert len(good) == 1
    assert isinstance(failed, Exception)
    assert ground.counts() == {"queued": 1}
    assert len(ground.events()) == 1


def test_ten_thousand_jobs_are_one_order(ground: Ground) -> None:
    placed = ground.add(*[job()] * 10_000)

    assert [place.id for place in placed] == list(range(1, 10_001))
    assert ground.counts() == {"queued": 10_000}
    assert ground.landed[-1].first_seq == 1
    assert len(ground.landed[-1].events) == 10_000


def test_what_is_due_later_waits_and_says_until_when(ground: Ground, clock: FakeClock) -> None:
    later = clock.now() + 7
    [sleeping, held] = ground.add(job(available_at=later), job(held=True))

    assert (ground.waits(sleeping.id), ground.waits(held.id)) == ("due", "held")
    assert ground.landed[-1].sleeps_until == later
    assert not ground.landed[-1].made_ready
    assert ground.take(2) == []


@pytest.mark.parametrize(
    "awkward",
    ["", "'; DROP TABLE jobs; --", "ключ", "🜁", 'a\nb\t"c"\\', ":rows", "%s %(x)s", "1e5", "null"],
)
def test_text_comes_back_as_it_was_given(ground: Ground, awkward: str) -> None:
    [placed] = ground.add(job(queue=awkward, step=awkward, batch=awkward, unique=awkward))

    row = ground.job(placed.id)
    assert (row.queue, row.step, row.batch, row.unique) == (awkward,) * 4


def test_every_column_of_an_order_reaches_its_row(ground: Ground, clock: FakeClock) -> None:
    new = NewJob(
        task="work",
        queue="bulk",
        args='{"a": [1, 2.5, null, "x"]}',
        operation="request",
        mode="auto",
        priority=-3,
        rank=2,
        max_attempts=7,
        available_at=clock.now() + 5,
        scheduled_for=clock.now() + 6,
        unique="u",
        limit_key="k",
        run_id=9,
        step="s",
        batch="b",
    )
    [placed] = ground.add(new)

    with ground.database.readers.connect() as connection:
        row = connection.execute(jobs.select().where(jobs.c.id == placed.id)).mappings().one()
    given = {name: getattr(new, name) for name in new.__struct_fields__ if name in row}
    assert {name: row[name] for name in given} == given
    assert (row["unique_key"], row["waits"], row["state"]) == ("u", "due", "queued")
    assert (row["created_at"], row["life"], row["attempts"]) == (clock.now(), 1, 0)


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_two_nodes_that_enqueue_one_unique_key_make_one_job(
    database: Database, clock: FakeClock
) -> None:
    """The second waits for the commit of the first, and then sees its job."""
    other = Ground(Database(database.url.render_as_string(hide_password=False)), clock, "n2")
    answers: list[Placed] = []
    with database.writers.connect() as connection, connection.begin():
        unit = Unit(connection, database, "n1", clock.now())
        [[first]] = enqueue(unit, [Order(jobs=[job(unique="a")])])
        second = threading.Thread(target=lambda: answers.extend(other.add(job(unique="a"))))
        second.start()
        with database.readers.connect() as reader:
            while not reader.execute(
                text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
            ).scalar_one():
                reader.rollback()
        unit.flush()
    second.join(10)
    other.database.close()

    assert answers == [Placed(first.id, JobState.QUEUED, created=False)]


@pytest.mark.parametrize("n", [1, 63, 64, 65, 600])
def test_a_batch_of_any_size_is_stored_whole_and_in_its_order(ground: Ground, n: int) -> None:
    new = [
        NewJob(task="work", queue="default", args=f'{{"n":{i}}}', priority=i % 2) for i in range(n)
    ]
    ids = [placed.id for placed in ground.add(*new)]
    assert [ground.job(id).args for id in ids] == [{"n": i} for i in range(n)]
    assert [event.seq for id in ids for event in ground.events(id)] == list(range(1, n + 1))

    hand = ground.hand(1, n)
    assert [job.id for job in hand] == sorted(ids, key=lambda id: (-new[id - 1].priority, id))
    ground.do(complete, [ground.completed(job, ground.clock.now()) for job in hand])
    assert ground.counts() == {"done": n}
    assert [ground.told(id) for id in ids] == [
        ["step_started", "action_started", "action_completed"]
    ] * n
