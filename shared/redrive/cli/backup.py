"""`redrive backup`: a copy of the store, taken while it works."""

from __future__ import annotations

from pathlib import Path

import click

from redrive.cli.output import print_done
from redrive.cli.settings import Settings
from redrive.cli.verb import Verb
from redrive.protocol.commands import Backup

_TIMEOUT = 3600.0  # seconds; a store may be large


@click.command(cls=Verb, examples=["redrive backup /var/backups/redrive.db"])
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.pass_obj
def backup(settings: Settings, file: Path) -> None:
    """Write a copy of the store to FILE.

    The daemon writes it, on its machine and as its user, while it works.
    """
    with settings.client() as client:
        request = Backup(path=str(file.absolute()))
        print_done(settings.as_json, client.ask(request, timeout=_TIMEOUT))
