"""`redrive reload`: let the daemon read its config again, all of it or none."""

from __future__ import annotations

import click

from redrive.cli.output import print_fields, print_json, say
from redrive.cli.settings import Settings
from redrive.cli.verb import Verb
from redrive.protocol.commands import Reload, ReloadReply


@click.command(cls=Verb, examples=["redrive reload --dry-run", "redrive reload"])
@click.option("--dry-run", is_flag=True, help="Only say what would change.")
@click.pass_obj
def reload(settings: Settings, dry_run: bool) -> None:
    """Make the daemon read its config again.

    A config with a mistake in it changes nothing (exit 78). What cannot be changed while the
    daemon runs is named.
    """
    with settings.client() as client:
        reply: ReloadReply = client.ask(Reload(dry_run=dry_run))
    if settings.as_json:
        print_json(reply)
        return
    if not reply.changed:
        say("nothing differs from the config in force")
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
