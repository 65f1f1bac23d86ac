"""Applications enqueue inside their own transactions, and real nodes make jobs of it."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from redrive import Outbox
from redrive.errors import NotFound
from redrive.protocol.commands import JobOrder
from redrive.protocol.rows import OutboxRow
from support.application import Application
from support.daemon import eventually
from support.databases import empty_postgresql_url
from support.markdown import blocks, files
from support.nodes import Nodes, nodes
from support.pages import DOCS
from support.trial import Trial

HANDLERS = """
def note(path, n):
    with open(path, "a") as file:
        file.write(f"{n}\\n")
"""
TASKS = """
[pools.default]
path = ["."]
[tasks.note]
python = "handlers:note"
"""
LATER = """
[tasks.later]
python = "handlers:note"
"""


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Nodes]:
    with nodes(tmp_path, TASKS, HANDLERS) as made:
        yield made


@pytest.fixture
def application(two: Nodes) -> Iterator[Application]:
    made = Application(two.url)
    yield made
    made.close()


def begun(node: Trial) -> Trial:
    node.start()
    return node


def until_settled(node: Trial, ticket: str) -> OutboxRow:
    def settled() -> OutboxRow | None:
        order = node.ask.order(ticket)
        return None if order.outcome == "waiting" else order

    order = eventually(settled, f"what becomes of {ticket}")
    assert order is not None
    return order


def test_a_commit_becomes_one_job_each_and_a_rollback_none_whichever_node_looks_first(
    two: Nodes, application: Application
) -> None:
    two.start()
    path = str(two.folder / "ran")
    chance, kept, dropped = random.Random(7), list[str](), list[str]()
    for n in range(60):
        with application.connect() as connection:
            connection.execute("INSERT INTO sales VALUES (%s)", (n,))
            orders = [JobOrder(args={"path": path, "n": n}) for _ in range(chance.randrange(1, 4))]
            tickets = Outbox().enqueue_many(connection, "note", orders)
            if chance.random() < 0.5:
                kept += tickets
            else:
                dropped += tickets
                connection.rollback()

    found = [until_settled(two["ab"[n % 2]], ticket) for n, ticket in enumerate(kept)]
    two["a"].until_all_ended()
    assert {order.outcome for order in found} == {"created"}
    assert len({order.job for order in found}) == len(kept)
    assert set(map(int, two.wrote("ran"))) == set(application.sales())
    assert len(two.wrote("ran")) == len(kept)
    for ticket in dropped[:3]:
        with pytest.raises(NotFound, match="there is no order"):
            two["b"].ask.order(ticket)
    two.check()


def test_a_node_killed_between_taking_a_row_and_its_commit_has_done_nothing(
    two: Nodes, application: Application
) -> None:
    node = begun(two["a"])
    path = str(two.folder / "ran")
    with application.holding_up_new_jobs():
        with application.connect() as connection:
            ticket = Outbox().enqueue(connection, "note", {"path": path, "n": 1})
        eventually(application.somebody_waits, "the node has taken the row")
        node.pull_the_plug()
    assert application.outcomes() == [None]

    two["b"].start()
    order = until_settled(two["b"], ticket)
    two["b"].until_all_ended()
    assert (order.outcome, order.job) == ("created", 1)
    assert two.wrote("ran") == ["1"]
    two.check()


def test_what_is_enqueued_while_no_daemon_runs_is_done_by_the_next(
    two: Nodes, application: Application
) -> None:
    with application.connect() as connection:
        ticket = Outbox().enqueue(connection, "note", {"path": str(two.folder / "ran"), "n": 1})
    node = begun(two["a"])
    assert until_settled(node, ticket).outcome == "created"


def test_a_bad_order_is_seen_and_told_and_done_after_all_once_the_config_knows_its_task(
    two: Nodes, application: Application
) -> None:
    node = begun(two["a"])
    path = str(two.folder / "ran")
    with application.connect() as connection:
        bad = Outbox().enqueue(connection, "later", {"path": path, "n": 1})
        good = Outbox().enqueue(connection, "note", {"path": path, "n": 2})
    assert until_settled(node, good).outcome == "created"
    assert until_settled(node, bad).outcome == "refused"

    shown = node.run("outbox", check=True).stdout
    assert bad in shown
    assert "there is no task 'later'" in shown
    assert good not in shown
    assert json.loads(node.run("outbox", good, "--json", check=True).stdout)["outcome"] == "created"
    assert "refused orders in the outbox: 1" in node.run("doctor").stdout
    eventually(lambda: "outbox were refused" in node.run("status").stdout, "it needs attention")
    assert [event.data["ticket"] for event in node.events() if event.type == "order_refused"] == [
        bad
    ]

    node.config.write_text(node.config.read_text() + LATER)
    node.run("reload", check=True)
    eventually(lambda: node.ask.order(bad).outcome == "created", "it is a job after all")
    node.until_all_ended()
    assert sorted(two.wrote("ran")) == ["1", "2"]

    with application.connect() as connection:
        worse = Outbox().enqueue(connection, "never")
    until_settled(node, worse)
    assert node.run("outbox", worse, "--discard", check=True).stdout == (
        f"order {worse} is discarded\n"
    )
    assert node.run("outbox").stdout == "the outbox is empty\n"
    eventually(lambda: not node.ask.status().attention, "nothing needs attention")
    assert node.run("outbox", worse).returncode == 1


# ---- as the pages have it ----------------------------------------------------------------------

BEFORE = (
    "CREATE TABLE jobs (title text)",
    "CREATE TABLE outbox (letter text)",
    "CREATE TABLE alembic_version (version_num varchar(32))",
    "INSERT INTO alembic_version VALUES ('of the application')",
    "CREATE ROLE shop LOGIN",
    "CREATE TABLE sales (picture text)",
    "GRANT INSERT ON sales TO shop",
)
AFTER = ("DROP OWNED BY shop, redrive CASCADE", "DROP ROLE shop, redrive")


def tell(url: str, *statements: str) -> None:
    with psycopg.connect(url) as owner:
        for statement in statements:
            owner.execute(statement.encode())


def test_a_store_and_an_application_share_a_database_as_the_documents_say(tmp_path: Path) -> None:
    """Their tables have the same names, each in a schema of its own."""
    url = empty_postgresql_url()
    owner = url.replace("+psycopg", "")
    by_role = {role: url.replace("//postgres:@", f"//{role}:@") for role in ("redrive", "shop")}
    [make_the_schema, give_the_rights] = (
        block.text for block in blocks(DOCS / "operations.md") if block.language == "sql"
    )
    tell(owner, *BEFORE, make_the_schema)
    try:
        with nodes(tmp_path, TASKS, HANDLERS, names="a", url=by_role["redrive"]) as one:
            node = begun(one["a"])
            tell(owner, give_the_rights)
            sold = subprocess.run(
                [sys.executable, "-c", files(DOCS / "handlers.md")["sell.py"]],
                env={**os.environ, "DATABASE": by_role["shop"].replace("+psycopg", "")},
                capture_output=True,
                text=True,
                check=True,
            )
            order = until_settled(node, sold.stdout.strip())
            assert (order.task, order.by) == ("resize", "postgresql:shop")
            assert order.outcome == "refused"  # only the page's own config has this task
        with psycopg.connect(owner) as connection:
            assert connection.execute("SELECT * FROM sales").fetchall() == [("lamp.png",)]
    finally:
        tell(owner, *AFTER)
