"""No statement that runs often reads a whole table: asked of both databases, with real rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, text

from redrive.filters import parse
from redrived.api.jobs import order
from redrived.store import batch_pages, due, events, groups, job_pages, outbox, rescue
from redrived.store.actions import Act, act
from redrived.store.beats import Beat, beat
from redrived.store.begin import Begun, begin
from redrived.store.database import Database
from redrived.store.enqueue import NewJob, Order
from redrived.store.give_back import GivenBack, give_back
from redrived.store.listing import listed
from redrived.store.outbox import Declined, Discard, Granted, Wish, decline, discard, grant
from redrived.store.picking import QueueRules, TaskRules
from redrived.store.promote import promote
from redrived.store.settle import complete
from support.ground import Ground
from support.statements import watching

FULL = 20_000  # jobs that are done: enough that no planner thinks reading them all is cheap
LARGE = ("jobs", "events", "ledger", "outbox")
SETTLED = (
    "INSERT INTO outbox (ticket, task, wish, by, at, outcome, job, settled_at)"
    " SELECT 't' || id, task, '', 'app', 0, 'created', id, 0 FROM jobs"
)

Asked = list[tuple[str, Any]]


@pytest.fixture
def full(ground: Ground) -> Ground:
    """A store that is mostly history."""
    ground.add(*[NewJob(task="work", queue="default")] * FULL)
    done = [ground.completed(job) for job in ground.hand(1, FULL)]
    ground.do(complete, done)
    with ground.database.writers.connect() as connection, connection.begin():
        connection.execute(text(SETTLED))
        if not ground.database.is_sqlite:
            connection.execute(text("ANALYZE"))
    return ground


@contextmanager
def listening(database: Database) -> Iterator[Asked]:
    """Every statement, with its parameters as the driver gets them."""
    asked: Asked = []

    with watching(database, lambda statement, parameters: asked.append((statement, parameters))):
        yield asked


def whole_tables_read(database: Database, asked: Asked) -> list[str]:
    """Those of the statements whose plan reads all of a large table."""
    with database.writers.connect() as connection, connection.begin() as never:
        bad = [
            f"{statement}\n{plan}"
            for statement, parameters in asked
            if statement.startswith(("SELECT", "UPDATE", "DELETE", "INSERT", "WITH"))
            for plan in [plan_of(connection, statement, parameters)]
            if reads_everything(plan)
        ]
        never.rollback()
    return bad


def plan_of(connection: Connection, statement: str, parameters: Any) -> str:
    is_sqlite = connection.dialect.name == "sqlite"
    explain = "EXPLAIN QUERY PLAN " if is_sqlite else "EXPLAIN "
    rows = connection.exec_driver_sql(explain + statement, parameters)
    return "\n".join(str(row[-1]) for row in rows)


def reads_everything(plan: str) -> bool:
    for table in LARGE:
        if re.search(rf"Seq Scan on {table}\b", plan):
            return True
        # A scan of a partial index reads what is in it, which is what it is for.
        for line in re.findall(rf"^SCAN {table}\b.*$", plan, re.MULTILINE):
            if not re.search(
                r"USING (COVERING )?INDEX jobs_(ready|due|leased|behind|live|in_group)", line
            ):
                return True
    return False


def work_through(ground: Ground) -> None:
    """Everything that happens to a job all the time."""
    keyed = {"work": TaskRules(keyed=True, rate=(9, 1_000_000)), "other": TaskRules(concurrency=9)}
    new = NewJob(task="work", queue="default", max_attempts=3, limit_key="k", unique="u")
    ground.add(new, NewJob(task="other", queue="bulk", available_at=ground.clock.now() + 1))
    ground.clock.move(1)
    ground.do(promote, 100)
    queues = {"bulk": QueueRules(concurrency=5)}
    first, second = ground.lease(5, tasks=keyed, queues=queues).picked.jobs()
    ground.do(beat, Beat(first.id, first.lease, ground.clock.now()))
    ground.finish(first)
    ground.fail(second)
    ground.finish(second)
    ground.do(act, Act(verb="requeue", jobs=[second.id], by="ann"))
    [job] = ground.hand(1, 1)
    back = GivenBack(job.id, job.lease, job.queue, job.task, job.leased_from, "k")
    ground.do(give_back, [back])
    [job] = ground.hand(1, 1)
    ground.do(begin, Begun(job.id, job.lease, ground.clock.now(), job.attempt))
    for verb in ("cancel", "kill", "restart", "hold", "run-now", "release", "discard"):
        ground.do(act, Act(verb=verb, jobs=[job.id, first.id], by="ann"))
    ground.fail(job)
    ground.do(act, Act(verb="discard", jobs=[job.id], by="ann"))


def work_off(ground: Ground) -> None:
    """What happens to rows of the outbox."""
    row = Wish(1, "t1", "work", "{}", "app", 0)
    order = Order(jobs=[NewJob(task="work", queue="default")])
    assert ground.do(grant, Granted(row, order)) is None
    ground.do(decline, Declined(row, "no"))
    ground.do(discard, Discard("t1", "ann"))


def test_no_change_reads_a_whole_table(full: Ground) -> None:
    with listening(full.database) as asked:
        work_through(full)
        work_off(full)

        for n in (3, 50):
            full.add(*[NewJob(task="work", queue="default")] * n)
            full.do(complete, [full.completed(job) for job in full.take(n)])

    assert len(asked) > 60
    assert whole_tables_read(full.database, asked) == []


LISTS = (
    *("state:dead", "state:queued,retry", "state:running", "!state:done", "state:scheduled"),
    *("state:dead queue:default", "state:leased node:n1", "state:dead group:f", "group:x"),
    *("error:nosuch", "error:time*", "reason:poison", "held:yes", "state:held", "next<1h"),
    *("state:dead error:time*", "state:retry sort:next", "state:scheduled sort:-next"),
    *("task:nosuch", "queue:nosuch", "!task:work", "task:other", "id:5,6", "run:r1"),
)


def test_no_list_of_a_screen_reads_a_whole_table(full: Ground) -> None:
    full.add(*[NewJob(task="other", queue="default", max_attempts=3)] * 4)
    dead, retry, *_ = full.take(3)
    full.fail(dead, error_type="timeout", fingerprint="f")
    full.fail(retry, retry_in=60, error_type="timeout", fingerprint="f")
    now = full.clock.now()
    with listening(full.database) as asked:
        for each in LISTS:
            full.ask(listed, parse(each), now, sort=order(parse(each)), count=True)
        full.ask(groups.groups, None, now, 100)

    assert len(asked) > 2 * len(LISTS)
    assert whole_tables_read(full.database, asked) == []


ASLEEP = 10_000
BY_ERROR = ("error:time*", "state:dead error:timeout", "group:f", "state:retry group:f")


@pytest.fixture
def asleep(ground: Ground) -> Ground:
    """Many that wait to be due, and a few that failed."""
    ground.add(*[NewJob(task="work", queue="default", max_attempts=3)] * 4)
    dead, retry, *_ = ground.take(4)
    ground.fail(dead, error_type="timeout", fingerprint="f")
    ground.fail(retry, retry_in=60, error_type="timeout", fingerprint="f")
    later = ground.clock.now() + 9_000_000_000
    job = NewJob(task="work", queue="default", available_at=later)
    ground.add(*[job] * ASLEEP)
    if not ground.database.is_sqlite:
        with ground.database.writers.connect() as connection, connection.begin():
            connection.execute(text("ANALYZE"))
    return ground


def plans_of_lists(ground: Ground, lists: Iterable[str]) -> list[str]:
    """How the jobs of each list are found, and counted where they have to be."""
    with listening(ground.database) as asked:
        for each in lists:
            filter = parse(each)
            found = ground.ask(listed, filter, ground.clock.now(), sort=order(filter), count=True)
            assert found.page.jobs
    with ground.database.readers.connect() as connection:
        return [
            plan_of(connection, *each)
            for each in asked
            if "jobs.id" in each[0] or "leaps" in each[0]
        ]


def test_who_failed_is_found_by_the_error_and_not_among_all_that_sleep(asleep: Ground) -> None:
    plans = plans_of_lists(asleep, BY_ERROR)
    assert len(plans) >= len(BY_ERROR)
    for plan in plans:
        assert re.search(r"jobs_(in_group|with_error)", plan), plan
        assert not re.search(r"jobs_(live|due)|SCAN jobs|Seq Scan on jobs", plan), plan


@pytest.mark.parametrize("wanted", ["sort:next", "state:queued sort:-next", "next>1h sort:next"])
def test_what_is_due_next_is_read_off_its_index(asleep: Ground, wanted: str) -> None:
    [plan, *_] = plans_of_lists(asleep, [wanted])
    assert "jobs_due" in plan
    assert not re.search(r"SCAN jobs$|Seq Scan on jobs", plan, re.MULTILINE), plan


def test_what_is_newest_is_found_by_walking_back_from_the_end(full: Ground) -> None:
    with listening(full.database) as asked:
        full.ask(job_pages.page, None)
        full.ask(events.newest, 10)

    with full.database.writers.connect() as connection:
        plans = [plan_of(connection, *each) for each in asked if "ORDER BY" in each[0]]
    assert len(plans) == 2
    # A page is sorted once it has been found; that is fifty rows.
    assert not any(re.search(r"Seq Scan", plan) for plan in plans)
    assert "ORDER BY" not in plans[1]


def test_no_other_question_reads_a_whole_table(full: Ground) -> None:
    full.add(*[NewJob(task="work", queue="default")] * 3)
    full.take(2)
    with listening(full.database) as asked:
        full.job(FULL)
        full.events(FULL)
        full.ask(events.head)
        full.ask(events.oldest)
        full.ask(events.after, 3 * FULL, 10)
        full.ask(rescue.left_behind, "n1")
        full.ask(rescue.told_unkillable, "n1")
        full.ask(batch_pages.batch_rows)
        full.ask(outbox.fate, "t5")
        if not full.database.is_sqlite:
            full.ask(due.to_do)
            full.ask(outbox.page, 0, 0)
            full.ask(outbox.unsettled, 100)
            full.ask(outbox.refused)

    assert whole_tables_read(full.database, asked) == []
