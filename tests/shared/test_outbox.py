"""Enqueueing inside a transaction: over whichever connection holds it, and only if it commits."""

from __future__ import annotations

import inspect
import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import Any, get_type_hints

import psycopg
import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.orm import Session

import redrive
from redrive import AsyncOutbox, Outbox
from redrive.client import AsyncClient
from redrive.errors import UsageProblem
from redrive.outbox import Options
from redrive.outbox.connections import NoOutbox
from redrive.protocol.commands import JobOrder
from support.application import Application
from support.databases import empty_postgresql_url, postgresql_url

SALE = "INSERT INTO sales VALUES (1)"


@pytest.fixture
def application() -> Iterator[Application]:
    made = Application(postgresql_url())
    yield made
    made.close()


@pytest.fixture
def engine(application: Application) -> Iterator[Engine]:
    made = create_engine("postgresql+psycopg://", creator=application.connect)
    yield made
    made.dispose()


# ---- by library --------------------------------------------------------------------------------


def test_a_commit_of_psycopg_leaves_the_sale_and_the_order(application: Application) -> None:
    with application.connect() as connection:
        connection.execute(SALE)
        ticket = Outbox().enqueue(connection, "mail", {"sale": 1})
    assert (application.sales(), application.tickets()) == ([1], [ticket])


def test_a_rollback_of_psycopg_leaves_neither(application: Application) -> None:
    with application.connect() as connection:
        connection.execute(SALE)
        Outbox().enqueue(connection, "mail", {"sale": 1})
        connection.rollback()
    assert (application.sales(), application.tickets()) == ([], [])


def test_a_rollback_to_a_savepoint_takes_only_what_came_after_it(application: Application) -> None:
    with application.connect() as connection:
        kept = Outbox().enqueue(connection, "mail")
        with connection.transaction(force_rollback=True):
            Outbox().enqueue(connection, "mail")
    assert application.tickets() == [kept]


async def test_a_connection_of_psycopg_for_asyncio_commits_and_rolls_back(
    application: Application,
) -> None:
    connection = await psycopg.AsyncConnection.connect(application.url)
    async with connection:
        ticket = await AsyncOutbox().enqueue(connection, "mail")
        await connection.commit()
        await AsyncOutbox().enqueue(connection, "mail")
        await connection.rollback()
    assert application.tickets() == [ticket]


def test_a_connection_of_sqlalchemy_commits_and_rolls_back(
    application: Application, engine: Engine
) -> None:
    with engine.begin() as connection:
        connection.execute(text(SALE))
        ticket = Outbox().enqueue(connection, "mail")
    with engine.begin() as connection:
        Outbox().enqueue(connection, "mail")
        connection.rollback()
    assert (application.sales(), application.tickets()) == ([1], [ticket])


def test_a_session_of_sqlalchemy_commits_and_rolls_back(
    application: Application, engine: Engine
) -> None:
    with Session(engine) as session:
        session.execute(text(SALE))
        ticket = Outbox().enqueue(session, "mail")
        session.commit()
        Outbox().enqueue(session, "mail")
        session.rollback()
    assert (application.sales(), application.tickets()) == ([1], [ticket])


async def test_asyncio_over_sqlalchemy_commits_and_rolls_back(application: Application) -> None:
    pytest.importorskip("greenlet", reason="SQLAlchemy needs it for asyncio")
    from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

    async def connect() -> psycopg.AsyncConnection[Any]:
        return await psycopg.AsyncConnection.connect(application.url)

    engine = create_async_engine("postgresql+psycopg://", async_creator=connect)
    async with engine.begin() as connection:
        first = await AsyncOutbox().enqueue(connection, "mail")
    async with AsyncSession(engine) as session:
        second = await AsyncOutbox().enqueue(session, "mail")
        await session.commit()
        await AsyncOutbox().enqueue(session, "mail")
        await session.rollback()
    await engine.dispose()
    assert application.tickets() == [first, second]


# ---- what is written ---------------------------------------------------------------------------


def wishes(application: Application) -> list[dict[str, Any]]:
    with psycopg.connect(application.owner_url) as owner:
        return [
            json.loads(wish) for (wish,) in owner.execute("SELECT wish FROM outbox ORDER BY id")
        ]


def test_many_are_one_statement_with_a_ticket_for_each_in_their_order(
    application: Application,
) -> None:
    orders = (JobOrder(args={"n": n, "text": 'a\\"b\u0000é%s$1'}) for n in range(500))
    with application.connect() as connection:
        tickets = Outbox().enqueue_many(connection, "mail", orders)
        assert Outbox().enqueue_many(connection, "mail", []) == []
    assert application.tickets() == tickets
    assert [wish["args"]["n"] for wish in wishes(application)] == list(range(500))
    assert wishes(application)[0]["args"]["text"] == 'a\\"b\u0000é%s$1'


def test_a_time_is_an_instant(application: Application) -> None:
    with application.connect() as connection:
        Outbox().enqueue(connection, "mail", at=datetime(1970, 1, 2, tzinfo=UTC))
    assert wishes(application)[0]["at"] == 86_400_000_000


def test_the_options_are_those_of_the_client() -> None:
    ours = get_type_hints(Options)
    theirs = inspect.signature(AsyncClient.enqueue).parameters
    assert list(ours) == [each for each in theirs if each not in ("self", "task", "args")]


def test_a_schema_may_be_named(application: Application) -> None:
    with psycopg.connect(application.owner_url) as owner:
        owner.execute("CREATE SCHEMA elsewhere")
        owner.execute("ALTER TABLE outbox SET SCHEMA elsewhere")
    with psycopg.connect(application.owner_url) as owner:
        Outbox(schema="elsewhere").enqueue(owner, "mail")
        assert owner.execute("SELECT count(*) FROM elsewhere.outbox").fetchone() == (1,)
    with pytest.raises(UsageProblem, match=r"'a\.b' is no name of a schema"):
        Outbox(schema="a.b")


# ---- what is refused, before the transaction has come to harm ------------------------------------

MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "arguments that are no JSON": ({"args": {"a": object()}}, "this cannot be sent"),
    "large arguments": ({"args": {"a": "x" * 1_100_000}}, "the arguments take 1100008 bytes"),
    "two times": ({"delay": 1, "at": 1}, "both a delay and a time were given"),
    "a time without a zone": ({"at": datetime(2026, 1, 1)}, "has no time zone"),  # noqa: DTZ001
    "a priority that is text": ({"priority": "high"}, "this is no order: Expected `int | null`"),
    "a key with a line end": ({"unique": "a\n"}, r"the unique key 'a\\n' cannot be used"),
    "a task with a line end": ({"task": "a\n"}, r"the name of the task 'a\\n' cannot be used"),
}


@pytest.mark.parametrize("kind", MISTAKES)
def test_a_mistake_costs_an_exception_and_not_the_transaction(
    kind: str, application: Application
) -> None:
    options, said = MISTAKES[kind]
    with application.connect() as connection:
        connection.execute(SALE)
        with pytest.raises(UsageProblem, match=said):
            Outbox().enqueue(connection, **{"task": "mail", **options})
    assert (application.sales(), application.tickets()) == ([1], [])


def test_sqlite_is_refused_by_name(engine: Engine) -> None:
    said = "there is no outbox in .*: a transaction can be shared only in PostgreSQL"
    with closing(sqlite3.connect(":memory:")) as connection, pytest.raises(NoOutbox, match=said):
        Outbox().enqueue(connection, "mail")
    other = create_engine("sqlite://")
    with other.connect() as connected, pytest.raises(NoOutbox, match=said) as caught:
        Outbox().enqueue(connected, "mail")
    assert "`redrive.Client`" in caught.value.hint


async def test_what_holds_no_transaction_or_is_of_the_other_kind_is_refused(
    application: Application, engine: Engine
) -> None:
    for wrong in (engine, application.url, None):
        with pytest.raises(UsageProblem, match="is no connection"):
            Outbox().enqueue(wrong, "mail")
        with pytest.raises(UsageProblem, match="is no connection"):
            await AsyncOutbox().enqueue(wrong, "mail")
    with application.connect() as connection, pytest.raises(UsageProblem, match="not for asyncio"):
        await AsyncOutbox().enqueue(connection, "mail")
    async with await psycopg.AsyncConnection.connect(application.url) as waiting:
        with pytest.raises(UsageProblem, match="is for asyncio") as caught:
            Outbox().enqueue(waiting, "mail")
    assert caught.value.hint == "use `redrive.AsyncOutbox` with it"


def test_a_database_without_our_outbox_is_told_from_one_we_may_not_write_into(
    application: Application,
) -> None:
    url = empty_postgresql_url().replace("postgresql+psycopg", "postgresql")
    with psycopg.connect(url) as stranger, pytest.raises(NoOutbox, match="there is no outbox"):
        Outbox().enqueue(stranger, "mail")
    with psycopg.connect(url) as stranger:
        stranger.execute("CREATE TABLE outbox (id int)")
        with pytest.raises(NoOutbox, match="there is no outbox of redrive"):
            Outbox().enqueue(stranger, "mail")
    with psycopg.connect(application.owner_url) as owner:
        owner.execute(f"REVOKE ALL (ticket, task, wish) ON outbox FROM {application.role}")
    with application.connect() as connection, pytest.raises(NoOutbox, match="may not write"):
        Outbox().enqueue(connection, "mail")


def test_another_error_of_the_database_is_not_ours_to_explain(application: Application) -> None:
    with application.connect() as connection:
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("SELECT * FROM nothing")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            Outbox().enqueue(connection, "mail")


def test_an_outbox_loads_no_sqlalchemy_and_no_sockets() -> None:
    program = (
        "import sys; from redrive import Outbox; Outbox();"
        " print(sorted({'sqlalchemy', 'zmq', 'psycopg', 'textual'} & sys.modules.keys()))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "[]"
    assert {"Outbox", "AsyncOutbox"} <= set(redrive.__all__)
