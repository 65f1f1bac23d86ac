"""`redrive groups`: dead and retrying jobs by what went wrong."""

from __future__ import annotations

from typing import Any

import click

from redrive.cli import listing, words
from redrive.cli.output import Column, print_each, print_table
from redrive.cli.settings import Settings
from redrive.cli.short_lists import Choice, choice_options
from redrive.cli.verb import Verb
from redrive.protocol.queries import GroupPage, ListGroups
from redrive.protocol.rows import GroupRow

_ALL = 10_000
_COLUMNS = (
    Column("GROUP"),
    Column("DEAD", right=True),
    Column("RETRYING", right=True),
    Column("LAST"),
    Column("TYPE"),
    Column("TASKS", shrinks=True),
    Column("ERROR", shrinks=True),
)


@click.command(
    cls=Verb,
    examples=[
        "redrive groups",
        "redrive groups --where queue:bulk",
        "redrive requeue --where 'state:dead group:FINGERPRINT' --pace 50/min",
    ],
)
@listing.where_option
@choice_options(filtered=False)
@click.pass_obj
def groups(settings: Settings, /, where: str | None, **chosen: Any) -> None:
    """List error groups: jobs whose last errors look alike."""
    choice = Choice(**chosen)
    with settings.client() as client:
        page: GroupPage = client.ask(ListGroups(where=where or "", limit=choice.needs or _ALL))
    rows = choice.of(GroupRow, page.groups, "group", "fingerprint")
    if settings.as_json:
        print_each(rows)
    else:
        print_table(_COLUMNS, map(_row, rows), empty="no errors")


def _row(group: GroupRow) -> tuple[object, ...]:
    tasks = ", ".join(sorted(group.tasks, key=lambda task: -group.tasks[task]))
    last = words.relative(group.last_at, words.now())
    return (
        group.fingerprint, group.dead, group.retrying, last,
        group.error_type, tasks, group.signature,
    )  # fmt: skip
