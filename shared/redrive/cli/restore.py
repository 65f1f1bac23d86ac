"""`redrive restore`: back to a copy of the store."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

import click

from redrive.cli.settings import Settings
from redrive.cli.verb import Verb
from redrive.config import find_config


@click.command(cls=Verb, examples=["redrive restore /var/backups/redrive.db"])
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.pass_obj
def restore(settings: Settings, file: Path) -> NoReturn:
    """Put the copy in FILE in the place of the store.

    No daemon may run meanwhile. What was there is kept beside it. Run this as the user of
    the daemon.
    """
    words = [sys.executable, "-m", "redrived.restore", "--config"]
    words += [str(find_config(settings.config_path)), str(file)]
    sys.stdout.flush()
    os.execv(sys.executable, [*words, "--json"] if settings.as_json else words)
