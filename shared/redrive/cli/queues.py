"""`redrive queues`: lanes, their limits and what is in them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from redrive.cli import words
from redrive.cli.output import Column, print_each, print_table
from redrive.cli.settings import Settings
from redrive.cli.short_lists import Choice, choice_options
from redrive.cli.verb import Verb
from redrive.clock import SECOND
from redrive.protocol.queries import ListQueues, QueuePage
from redrive.protocol.rows import QueueRow

_COLUMNS = (
    Column("QUEUE", shrinks=True),
    Column("", coloured=True),
    Column("PRIORITY", right=True),
    Column("READY", right=True),
    Column("RUNNING", right=True),
    Column("SCHEDULED", right=True),
    Column("HELD", right=True),
    Column("RETRYING", right=True),
    Column("DEAD", right=True),
    Column("DONE", right=True),
    Column("OLDEST", right=True),
)


@click.command(
    cls=Verb, examples=["redrive queues", "redrive pause queue:bulk --why 'vendor down'"]
)
@choice_options()
@click.pass_obj
def queues(settings: Settings, /, **choice: Any) -> None:
    """List queues with their counts, limits and pauses."""
    with settings.client() as client:
        page: QueuePage = client.ask(ListQueues())
    rows = Choice(**choice).of(QueueRow, page.queues, "queue")
    if settings.as_json:
        print_each(rows)
    else:
        print_queues(rows)


def print_queues(rows: Iterable[QueueRow]) -> None:
    print_table(_COLUMNS, map(_row, rows), empty="no queues")


def _row(queue: QueueRow) -> tuple[object, ...]:
    running = str(queue.running)
    if queue.concurrency is not None:
        running = f"{queue.running}/{queue.concurrency}"
    waited = (words.now() - queue.oldest_ready_at) / SECOND if queue.oldest_ready_at else None
    return (
        queue.name,
        "PAUSED" if queue.paused else "",
        queue.priority,
        queue.ready,
        running,
        queue.scheduled,
        queue.held,
        queue.retrying,
        queue.states.get("dead", 0),
        queue.states.get("done", 0),
        None if waited is None else words.span(waited),
    )
