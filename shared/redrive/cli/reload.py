"""`redrive reload`: let the daemon read its config again, all of it or none."""

from __future__ import annotations

import click

from redrive.cli.output import print_fields, print_json, say
from redrive.cli.settings import Settings
from redrive.cli.verb import Verb
from redrive.errors import Exit
from redrive.protocol.commands import Reload, ReloadReply


@click.command(cls=Verb, examples=["redrive reload --dry-run", "redrive reload"])
@click.option("--dry-run", is_flag=True, help="Only say what would change.")
@click.pass_obj
def reload(settings: Settings, dry_run: bool) -> int:
    """Make the daemon read its config again.

    A config with a mistake in it changes nothing, nor does one that asks for what only a
    restart can change, which is named. Both exit with 78, also with --dry-run.
    """
    with settings.client() as client:
        reply: ReloadReply = client.ask(Reload(dry_run=dry_run))
    if settings.as_json:
        print_json(reply)
    else:
        _show(reply, dry_run)
    return Exit.CONFIG if reply.needs_restart else Exit.OK


def _show(reply: ReloadReply, dry_run: bool) -> None:
    if not reply.changed:
        say("nothing differs from the config in force")
    elif reply.needs_restart:
        say("a reload would be refused:")
    elif dry_run:
        say("a reload would change:")
    else:
        say("reloaded:")
    print_fields(
        [
            ("  added", "\n".join(reply.added)),
            ("  altered", "\n".join(reply.altered)),
            ("  removed", "\n".join(reply.removed)),
            ("  needs a restart", "\n".join(reply.needs_restart)),
            ("  note", "\n".join(reply.notes)),
        ]
    )
