"""`redrive outbox`: what applications enqueued inside transactions of their own."""

from __future__ import annotations

import click

from redrive.cli import kinds, words
from redrive.cli.output import Column, print_done, print_each, print_fields, print_json, print_table
from redrive.cli.settings import Settings
from redrive.cli.verb import Verb
from redrive.errors import UsageProblem
from redrive.protocol.commands import DiscardOrder
from redrive.protocol.queries import ListOutbox, OutboxPage
from redrive.protocol.rows import OutboxRow

_COLUMNS = (
    Column("TICKET"),
    Column("OUTCOME", coloured=True),
    Column("ASKED"),
    Column("BY"),
    Column("TASK"),
    Column("WHY", shrinks=True),
)


@click.command(
    cls=Verb,
    examples=["redrive outbox", "redrive outbox TICKET", "redrive outbox TICKET --discard"],
)
@click.argument("ticket", required=False)
@click.option("--discard", is_flag=True, help="Remove it, unless it is a job by now.")
@click.option(
    "--limit", type=kinds.count, default="200", metavar="N",
    help="At most so many; default: 200.",
)  # fmt: skip
@click.pass_obj
def outbox(settings: Settings, ticket: str | None, discard: bool, limit: int) -> None:
    """List what waits in the outbox, or was refused there.

    Applications that share the store's PostgreSQL enqueue into it inside their transactions.
    With TICKET, shows what became of that order.
    """
    with settings.client() as client:
        if discard:
            print_done(settings.as_json, client.ask(DiscardOrder(ticket=_named(ticket))))
            return
        page: OutboxPage = client.ask(ListOutbox(ticket=ticket, limit=limit))
    if ticket is None:
        _print_all(settings, page.orders)
    else:
        _print_one(settings, page.orders[0])


def _named(ticket: str | None) -> str:
    if ticket is None:
        raise UsageProblem("nothing was named to discard", hint="`redrive outbox` lists tickets")
    return ticket


def _print_all(settings: Settings, orders: list[OutboxRow]) -> None:
    if settings.as_json:
        print_each(orders)
    else:
        print_table(_COLUMNS, map(_row, orders), empty="the outbox is empty")


def _print_one(settings: Settings, order: OutboxRow) -> None:
    if settings.as_json:
        print_json(order)
        return
    print_fields(
        [
            ("ticket", order.ticket),
            ("task", order.task),
            ("asked", f"{words.relative(order.at, words.now())} by {order.by}"),
            ("outcome", order.outcome),
            ("job", order.job),
            ("why", order.why),
        ]
    )


def _row(order: OutboxRow) -> tuple[object, ...]:
    asked = words.relative(order.at, words.now())
    return (order.ticket, order.outcome, asked, order.by, order.task, order.why)
