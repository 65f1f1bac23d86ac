"""`redrive keys`: who may speak to the daemon over tcp."""

from __future__ import annotations

from pathlib import Path

import click

from redrive import keys as store
from redrive.cli.output import Column, print_each, print_json, print_table, say
from redrive.cli.settings import Settings
from redrive.cli.verb import Noun
from redrive.errors import ConfigProblem

_COLUMNS = (Column("NAME"), Column("ROLE"), Column("PUBLIC KEY"))


@click.group(cls=Noun)
def keys() -> None:
    """Make and list the keys that are let in over tcp."""


@keys.command(examples=["redrive keys new anna --role operator", "redrive keys new wallboard"])
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(list(store.FOLDERS)),
    default="viewer",
    show_default=True,
    help="A viewer may look, an operator may change.",
)
@click.pass_obj
def new(settings: Settings, name: str, role: store.Role) -> None:
    """Make a key for NAME, and the daemon's own when it has none."""
    folder = _folder(settings)
    written = store.new(folder, name, role)
    if settings.as_json:
        print_json({"name": name, "role": role, "files": [str(path) for path in written]})
        return
    for path in written:
        say(str(path))
    say(f"Move {name}.secret to the client's machine, with a copy of server.public beside it,")
    say("and name their folder as `curve` in [bus] there.")


@keys.command("list", examples=["redrive keys list"])
@click.pass_obj
def list_keys(settings: Settings) -> None:
    """List the keys that are let in."""
    known = store.known(_folder(settings))
    if settings.as_json:
        print_each(known)
    else:
        rows = ((key.name, key.role, key.public) for key in known)
        print_table(_COLUMNS, rows, empty="no keys")


def _folder(settings: Settings) -> Path:
    folder = settings.config.bus.curve
    if folder is None:
        raise ConfigProblem(
            "the config names no folder for keys", hint='write `curve = "keys/"` in [bus]'
        )
    return Path(folder)
