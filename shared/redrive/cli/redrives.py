"""`redrive redrives` and `redrive undo`: sets that were given another life."""

from __future__ import annotations

import click

from redrive.cli import kinds, words
from redrive.cli.output import Column, print_done, print_each, print_table
from redrive.cli.settings import Settings
from redrive.cli.verb import Verb
from redrive.event_words import skips_in_words
from redrive.protocol.commands import Undo
from redrive.protocol.queries import ListRedrives, RedrivePage
from redrive.protocol.rows import RedriveRow

_COLUMNS = (
    Column("ID", right=True),
    Column("STATE", coloured=True),
    Column("REQUEUED", right=True),
    Column("DONE", right=True),
    Column("FAILED", right=True),
    Column("SKIPPED", right=True),
    Column("BEGUN"),
    Column("BY"),
    Column("OF", shrinks=True),
    Column("WHY", shrinks=True),
)


@click.command(
    cls=Verb,
    examples=["redrive redrives", "redrive pause redrive:3", "redrive undo 3"],
)
@click.option(
    "--limit",
    type=kinds.count,
    default="100",
    metavar="N",
    help="At most so many; default: 100.",
)
@click.pass_obj
def redrives(settings: Settings, limit: int) -> None:
    """List redrives with their progress, the newest first.

    WHY says why one was stopped, and for which reasons jobs were skipped, the most common first.
    """
    with settings.client() as client:
        page: RedrivePage = client.ask(ListRedrives(limit=limit))
    if settings.as_json:
        print_each(page.redrives)
    else:
        print_table(_COLUMNS, map(_row, page.redrives), empty="no redrives")


@click.command(cls=Verb, examples=["redrive undo 3"])
@click.argument("redrive", metavar="ID", type=kinds.redrive)
@click.pass_obj
def undo(settings: Settings, redrive: int) -> None:
    """Take back a redrive: what has not run is what it was."""
    with settings.client() as client:
        print_done(settings.as_json, client.ask(Undo(redrive=redrive)))


def _row(redrive: RedriveRow) -> tuple[object, ...]:
    return (
        redrive.id,
        redrive.state,
        f"{redrive.requeued}/{redrive.total}",
        redrive.succeeded,
        redrive.failed,
        redrive.skipped,
        words.relative(redrive.created_at, words.now()),
        redrive.by,
        redrive.where or "ids",
        "; ".join(filter(None, (redrive.why, skips_in_words(redrive.skips)))) or None,
    )
