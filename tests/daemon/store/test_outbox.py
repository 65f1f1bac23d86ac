"""What applications asked for in their own transactions becomes a job once, or stays and says why.

SQLite has no outbox to write to: all of it is PostgreSQL's.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from psycopg.errors import CheckViolation, InsufficientPrivilege
from sqlalchemy import Connection, text

from redrive.outbox import Outbox
from redrive.protocol.rows import OutboxRow
from redrived.store import outbox, retention
from redrived.store.actions import Act, act
from redrived.store.database import Database
from redrived.store.due import to_do
from redrived.store.enqueue import NewJob, Order, Placed
from redrived.store.outbox import Declined, Discard, Granted, Wish, decline, discard, grant
from redrived.store.retention import Ended
from support.application import Application
from support.crashes import Killed, dying_after
from support.databases import database as make_database
from support.ground import Ground
from support.invariants import check
from support.open_store import url_of
from support.pair import PATIENCE, Pair


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with make_database("postgresql", tmp_path) as made:
        yield made


@pytest.fixture
def application(database: Database) -> Iterator[Application]:
    made = Application(url_of(database))
    yield made
    made.close()


def waiting(ground: Ground, refused_after: int = 1 << 60) -> list[Wish]:
    return ground.ask(outbox.page, 0, refused_after)


def granted(row: Wish, **more: object) -> Granted:
    job = NewJob(task=row.task, queue="default", args='{"n": 1}', **more)  # type: ignore[arg-type]
    return Granted(row, Order(jobs=[job], by=outbox.asker(row.by), data={"ticket": row.ticket}))


def fates(ground: Ground, *tickets: str) -> list[OutboxRow | None]:
    return [ground.ask(outbox.fate, ticket) for ticket in tickets]


def test_a_row_becomes_a_job_whose_first_event_says_who_asked_and_by_which_ticket(
    ground: Ground, application: Application
) -> None:
    with application.connect() as connection:
        ticket = Outbox().enqueue(connection, "work", {"n": 1}, priority=3)
    [row] = waiting(ground)
    assert (row.ticket, row.task, row.by) == (ticket, "work", application.role)

    placed = ground.do(grant, granted(row))

    assert placed == Placed(1)
    [event] = ground.events(1)
    assert event.type == "step_started"
    assert event.data == {"by": f"postgresql:{application.role}", "ticket": ticket}
    assert waiting(ground) == []
    [fate] = fates(ground, ticket)
    assert fate is not None
    assert (fate.outcome, fate.job, fate.why) == ("created", 1, None)
    check(ground)


def test_a_row_is_not_granted_twice(ground: Ground, application: Application) -> None:
    application.write()
    [row] = waiting(ground)
    assert ground.do(grant, granted(row)) == Placed(1)
    assert ground.do(grant, granted(row)) is None
    assert ground.counts() == {"queued": 1}


def test_of_rows_with_one_unique_key_one_becomes_a_job_and_the_others_know_it(
    ground: Ground, application: Application
) -> None:
    for _ in range(3):
        application.write()
    first, second, third = waiting(ground)
    ground.do(grant, granted(first, unique="u"))
    ground.do(grant, granted(second, unique="u"))
    ground.do(grant, granted(third, unique="another"))

    told = [(fate.outcome, fate.job) for fate in fates(ground, *application.tickets()) if fate]
    assert told == [("created", 1), ("known", 1), ("created", 3)]
    check(ground)


def test_a_death_at_any_statement_leaves_the_row_or_the_job_and_never_both(
    ground: Ground, application: Application
) -> None:
    place, has_died = 0, True
    while has_died:
        application.write()
        [row] = waiting(ground)
        before = ground.counts().get("queued", 0)
        try:
            with dying_after(ground.database, place):
                ground.do(grant, granted(row))
            has_died = False
        except Killed:
            assert waiting(ground) == [row]
            assert ground.counts().get("queued", 0) == before
            assert ground.do(grant, granted(row)) is not None
        assert ground.counts() == {"queued": before + 1}
        check(ground)
        place += 1
    assert place > 5


def test_of_two_nodes_that_found_a_row_one_makes_the_job(pair: Pair) -> None:
    application = Application(url_of(pair.one.database))
    application.write()
    [row] = waiting(pair.one)
    with pair.mid_commit(grant, granted(row)) as placed:
        other = pair.meanwhile(lambda: pair.two.do(grant, granted(row)))
    assert placed == Placed(1)
    assert other.result(PATIENCE) is None
    assert pair.one.counts() == {"queued": 1}
    check(pair.one)
    application.close()


def test_a_row_whose_transaction_is_open_is_not_seen(
    ground: Ground, application: Application
) -> None:
    with application.connect() as connection:
        Outbox().enqueue(connection, "work")
        assert waiting(ground) == []
        assert not ground.ask(to_do).is_ordered
    assert len(waiting(ground)) == 1
    assert ground.ask(to_do).is_ordered


def test_rows_come_in_the_order_in_which_they_were_written(
    ground: Ground, application: Application
) -> None:
    with application.connect() as connection:
        orders = [Outbox().enqueue(connection, "work", {"n": n}) for n in range(20)]
    assert [row.ticket for row in waiting(ground)] == orders


def test_a_refusal_is_an_event_once_and_its_words_are_the_latest(
    ground: Ground, application: Application
) -> None:
    application.write("nothing")
    [row] = waiting(ground)
    ground.do(decline, Declined(row, "there is no task"))
    ground.do(decline, Declined(row, "there is no queue"))

    [refused] = [event for event in ground.events() if event.type == "order_refused"]
    assert refused.data["ticket"] == row.ticket
    assert refused.data["by"] == f"postgresql:{application.role}"
    [fate] = ground.ask(outbox.unsettled, 10)
    assert (fate.outcome, fate.why) == ("refused", "there is no queue")
    assert ground.ask(outbox.refused) == 1
    assert waiting(ground) == []
    refused_at = ground.ask(to_do).refused_at
    assert refused_at is not None
    assert waiting(ground, refused_at - 1) == [row]
    assert waiting(ground, refused_at) == []


def test_what_was_refused_can_be_granted_later_and_what_was_granted_is_not_refused(
    ground: Ground, application: Application
) -> None:
    application.write()
    [row] = waiting(ground)
    ground.do(decline, Declined(row, "there is no task"))
    ground.do(grant, granted(row))
    ground.do(decline, Declined(row, "there is no task"))
    [fate] = fates(ground, row.ticket)
    assert fate is not None
    assert (fate.outcome, fate.why) == ("created", None)
    assert ground.ask(to_do).refused_at is None


def test_a_row_that_is_no_job_can_be_discarded_and_leaves_an_event(
    ground: Ground, application: Application
) -> None:
    application.write()
    application.write()
    first, second = waiting(ground)
    ground.do(decline, Declined(first, "no"))
    ground.do(grant, granted(second))

    assert ground.do(discard, Discard(first.ticket, "ann")) == "refused"
    assert ground.do(discard, Discard(second.ticket, "ann")) == "created"
    assert ground.do(discard, Discard("unheard of", "ann")) is None

    assert application.tickets() == [second.ticket]
    [gone] = [event for event in ground.events() if event.type == "order_discarded"]
    assert gone.data == {
        "ticket": first.ticket,
        "task": "work",
        "by": "ann",
        "asked_by": f"postgresql:{application.role}",
    }


def test_a_ticket_goes_with_its_job(ground: Ground, application: Application) -> None:
    for _ in range(3):
        application.write()
    for row in waiting(ground):
        ground.do(grant, granted(row))
    done, dead, _ = ground.take(3)
    ground.finish(done)
    ground.fail(dead)

    ground.do(retention.forget_jobs, Ended("done", 0, 1 << 60))
    ground.do(act, Act(verb="discard", jobs=[dead.id], by="ann"))

    assert ground.ask(jobs_with_a_ticket) == [3]


def jobs_with_a_ticket(connection: Connection) -> list[int]:
    return list(connection.execute(text("SELECT job FROM outbox")).scalars())


def test_large_wishes_come_a_few_at_a_time_and_none_is_left_out(
    ground: Ground, application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "PAGE_CHARACTERS", 1_000)
    for n in (10, 600, 600, 2_000, 10):
        application.write(wish=" " * n)
    pages: list[int] = []
    after = 0
    while rows := ground.ask(outbox.page, after, 1 << 60):
        pages.append(len(rows))
        after = rows[-1].id
    assert pages == [3, 1, 1]


def test_what_is_too_large_is_refused_while_the_transaction_lasts(application: Application) -> None:
    for task, wish in (("", "{}"), ("t" * 201, "{}"), ("work", " " * 2_500_001)):
        with pytest.raises(CheckViolation, match="fits"):
            application.write(task, wish)


def test_an_application_can_neither_read_the_outbox_nor_claim_to_be_another(
    application: Application,
) -> None:
    for statement in (
        "SELECT * FROM outbox",
        "INSERT INTO outbox (task, by) VALUES ('work', 'admin')",
        "INSERT INTO outbox (task, outcome) VALUES ('work', 'created')",
        "UPDATE outbox SET task = 'x'",
        "DELETE FROM outbox",
    ):
        with application.connect() as connection, pytest.raises(InsufficientPrivilege):
            connection.execute(statement)
