"""`redrive nodes`: the running daemons."""

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
from redrive.protocol.queries import ListNodes, NodePage
from redrive.protocol.rows import NodeRow

_COLUMNS = (
    Column("NODE"),
    Column("STATE", coloured=True),
    Column("BEAT", right=True),
    Column("BUSY", right=True),
    Column("CPU", right=True),
    Column("MEMORY", right=True),
    Column("UP", right=True),
    Column("VERSION"),
    Column("QUEUES", shrinks=True),
)


@click.command(cls=Verb, examples=["redrive nodes"])
@choice_options()
@click.pass_obj
def nodes(settings: Settings, /, **choice: Any) -> None:
    """List nodes with their load and last sign of life."""
    with settings.client() as client:
        page: NodePage = client.ask(ListNodes())
    rows = Choice(**choice).of(NodeRow, page.nodes, "node")
    if settings.as_json:
        print_each(rows)
    else:
        print_nodes(rows)


def print_nodes(rows: Iterable[NodeRow]) -> None:
    print_table(_COLUMNS, map(_row, rows), empty="no nodes")


def _row(node: NodeRow) -> tuple[object, ...]:
    now = words.now()
    return (
        f"{node.name} (leader)" if node.leader else node.name,
        node.state,
        words.span((now - node.beat_at) / SECOND),
        f"{node.busy}/{node.slots}",
        None if node.cpu is None else f"{node.cpu:.0f}%",
        None if node.memory is None else words.size(node.memory),
        words.span((now - node.started_at) / SECOND),
        node.version,
        ", ".join(node.queues),
    )
