"""What a node makes of the outbox: every row by the rules of any request, and each by itself."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from redrive.config import load
from redrive.errors import NotFound, TryLater, UsageProblem, WrongState
from redrive.models import Job
from redrive.outbox import Outbox
from redrive.protocol.commands import DiscardOrder
from redrive.protocol.queries import Doctor, ListOutbox
from redrive.protocol.rows import OutboxRow
from redrived.api import doctor, outbox
from redrived.bus import Asker
from redrived.engine.engine import Engine
from redrived.store import due, jobs
from support.application import Application
from support.clock import FakeClock
from support.databases import postgresql_url
from support.engines import an_engine, told

ANN = Asker(who="ann", role="operator")
CONFIG = """
[queues.bulk]
operations = ["first", "second"]
[tasks.work]
command = ["true"]
queue = "bulk"
priority = 2
retry = 4
[tasks.keyed]
command = ["true"]
concurrency = 1
concurrency_key = "{{ args.tenant }}"
"""
MORE = '[tasks.later]\ncommand = ["true"]\n'


@pytest.fixture
def application() -> Iterator[Application]:
    made = Application(postgresql_url())
    yield made
    made.close()


@pytest.fixture
async def engine(application: Application, tmp_path: Path) -> AsyncIterator[Engine]:
    async with an_engine(tmp_path, CONFIG, url=store_url(application)) as made:
        yield made


def store_url(application: Application) -> str:
    return application.owner_url.replace("postgresql://", "postgresql+psycopg://")


async def look(engine: Engine) -> None:
    """As it happens once a second."""
    found = await engine.store.read(due.to_do)
    engine.outbox.look(found.is_ordered, found.refused_at)
    await engine.outbox.run_once()


async def orders(engine: Engine, application: Application) -> list[OutboxRow]:
    found = [
        await outbox.list_outbox(engine, ANN, ListOutbox(ticket=ticket))
        for ticket in application.tickets()
    ]
    return [order for page in found for order in page.orders]


async def job(engine: Engine, order: OutboxRow) -> Job:
    assert order.job is not None
    found = await engine.store.read(jobs.get, order.job)
    assert found is not None
    return found


async def test_a_row_gets_what_the_config_says_of_its_task_and_what_it_says_itself(
    engine: Engine, application: Application
) -> None:
    with application.connect() as connection:
        Outbox().enqueue(connection, "work", {"path": "a"})
        Outbox().enqueue(
            connection, "work", operation="second", mode="test", priority=7, unique="u", hold=True
        )
    await look(engine)

    plain, told_more = [await job(engine, order) for order in await orders(engine, application)]
    assert (plain.queue, plain.priority, plain.max_attempts) == ("bulk", 2, 4)
    assert (plain.args, plain.state, plain.held) == ({"path": "a"}, "queued", False)
    assert (told_more.operation, told_more.mode, told_more.priority) == ("second", "test", 7)
    assert (told_more.unique, told_more.held) == ("u", True)


async def test_a_delay_counts_from_the_transaction_and_not_from_when_a_node_looks(
    engine: Engine, application: Application
) -> None:
    with application.connect() as connection:
        Outbox().enqueue(connection, "work", delay=60)
    await look(engine)
    [order] = await orders(engine, application)
    assert (await job(engine, order)).available_at == order.at + 60_000_000


BAD: dict[str, tuple[str, str, str]] = {
    "a task there is not": ("wrok", "{}", "there is no task 'wrok'; did you mean 'work'?"),
    "a queue there is not": ("work", '{"queue": "bluk"}', "there is no queue 'bluk'"),
    "a queue without a name": ("work", '{"queue": ""}', "there is no queue ''"),
    "an operation without a name": ("work", '{"operation": ""}', "the operation '' cannot be used"),
    "no JSON": ("work", "{", "the wish cannot be read"),
    "no object": ("work", "[]", "the wish cannot be read"),
    "arguments that are a list": ("work", '{"args": [1]}', "the wish cannot be read"),
    "an option there is not": ("work", '{"prio": 1}', "the wish cannot be read"),
    "two times": ("work", '{"delay": 1, "at": 1}', "both a delay and a time were given"),
    "a key that cannot be made": ("keyed", "{}", "the template `{{ args.tenant }}` failed"),
    "a priority of many digits": (
        "work",
        '{"priority": 9999999999}',
        "a priority of 9999999999 is not possible",
    ),
    "a time of no calendar": ("work", '{"at": 999999999999999999}', "a job cannot wait for"),
    "a queue with a NUL": ("work", '{"queue": "\\u0000"}', "there is no queue"),
    "large arguments": ("work", json.dumps({"args": {"a": "x" * 1_100_000}}), "the arguments take"),
}


@pytest.mark.parametrize("kind", BAD)
async def test_a_row_of_which_no_job_can_be_made_stays_and_says_why_and_holds_up_no_other(
    kind: str, engine: Engine, application: Application
) -> None:
    task, wish, why = BAD[kind]
    application.write()
    application.write(task, wish)
    application.write()
    await look(engine)

    first, bad, last = await orders(engine, application)
    assert [first.outcome, bad.outcome, last.outcome] == ["created", "refused", "created"]
    assert bad.why is not None
    assert bad.why.startswith(why)
    [event] = await told(engine, "order_refused")
    assert event.data == {"ticket": bad.ticket, "task": task, "by": bad.by, "why": bad.why}
    listed = await outbox.list_outbox(engine, ANN, ListOutbox())
    assert listed.orders == [bad]
    checks = (await doctor.doctor(engine, ANN, Doctor())).checks
    [check] = [check for check in checks if check.name == "outbox"]
    assert (check.ok, check.text) == (False, "refused orders in the outbox: 1")


async def test_what_was_refused_is_not_looked_at_again_while_nothing_is_new(
    engine: Engine, application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    application.write("later")
    await look(engine)
    await look(engine)  # its own refusal is news once
    found = await engine.store.read(due.to_do)
    woken: list[bool] = []
    monkeypatch.setattr(engine.outbox, "wake", lambda: woken.append(True))
    engine.outbox.look(found.is_ordered, found.refused_at)
    assert woken == []
    assert len(await told(engine, "order_refused")) == 1


async def test_what_was_refused_is_made_a_job_once_the_config_allows_it(
    engine: Engine, application: Application, tmp_path: Path
) -> None:
    application.write("later")
    await look(engine)
    file = tmp_path / "config.toml"
    file.write_text(CONFIG + MORE)
    engine.use(load(file, {}).config)
    await look(engine)
    [order] = await orders(engine, application)
    assert (order.outcome, order.why) == ("created", None)


async def test_what_one_node_refuses_another_makes_a_job_when_its_config_allows_it(
    engine: Engine, application: Application, tmp_path: Path
) -> None:
    folder = tmp_path / "two"
    folder.mkdir()
    async with an_engine(folder, CONFIG + MORE, url=store_url(application), name="n2") as other:
        await look(other)
        application.write("later")
        await look(engine)
        [order] = await orders(engine, application)
        assert order.outcome == "refused"
        await look(other)
    [order] = await orders(engine, application)
    assert order.outcome == "created"


async def test_a_store_that_is_in_trouble_refuses_no_row(
    engine: Engine, application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    application.write("later")
    application.write()
    with monkeypatch.context() as trouble:

        def submit(*_: object) -> None:
            raise TryLater("the store cannot take this now")

        trouble.setattr(engine.store, "submit", submit)
        with pytest.raises(TryLater):
            await look(engine)
    assert application.outcomes() == [None, None]
    await look(engine)
    assert application.outcomes() == ["refused", "created"]


async def test_a_refused_order_can_be_discarded_and_a_job_cannot(
    engine: Engine, application: Application
) -> None:
    application.write("later")
    application.write()
    await look(engine)
    refused, created = await orders(engine, application)

    done = await outbox.discard_order(engine, ANN, DiscardOrder(ticket=refused.ticket))

    assert done.text == f"order {refused.ticket} is discarded"
    with pytest.raises(NotFound, match=f"there is no order '{refused.ticket}'"):
        await outbox.discard_order(engine, ANN, DiscardOrder(ticket=refused.ticket))
    with pytest.raises(NotFound, match="its transaction has not been committed"):
        await outbox.list_outbox(engine, ANN, ListOutbox(ticket=refused.ticket))
    with pytest.raises(WrongState, match=f"order {created.ticket} is a job by now"):
        await outbox.discard_order(engine, ANN, DiscardOrder(ticket=created.ticket))


async def test_a_sqlite_store_says_that_it_has_no_outbox(tmp_path: Path) -> None:
    async with an_engine(tmp_path, clock=FakeClock()) as engine:
        with pytest.raises(UsageProblem, match="the store is SQLite, which has no outbox"):
            await outbox.list_outbox(engine, ANN, ListOutbox())
        with pytest.raises(UsageProblem, match="the store is SQLite, which has no outbox"):
            await outbox.discard_order(engine, ANN, DiscardOrder(ticket="a"))
        checks = (await doctor.doctor(engine, ANN, Doctor())).checks
        assert "outbox" not in {check.name for check in checks}
