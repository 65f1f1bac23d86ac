"""`redrive systemd`: the daemon as a service."""

from __future__ import annotations

import click

from redrive import systemd as units
from redrive.cli.output import print_json, say
from redrive.cli.settings import Settings
from redrive.cli.verb import Noun


@click.group(cls=Noun)
def systemd() -> None:
    """Run the daemon under systemd."""


@systemd.command(
    examples=["sudo redrive systemd install", "redrive systemd install --user"],
)
@click.option("--user", "own", is_flag=True, help="A service of your own, without root.")
@click.option("--strict", is_flag=True, help="Keep from jobs whatever most of them do not need.")
@click.option("--as", "account", default="redrive", show_default=True, help="Whom it runs as.")
@click.option("--print", "only_print", is_flag=True, help="Show the unit, write nothing.")
@click.pass_obj
def install(settings: Settings, own: bool, strict: bool, account: str, only_print: bool) -> None:
    """Write a unit with the paths of this installation and its config."""
    if own and strict:
        raise click.UsageError("--user and --strict exclude each other")
    profile: units.Profile = "user" if own else "strict" if strict else "general"
    config = settings.whole_config().config
    if only_print:
        click.echo(units.unit(profile, units.here(config, account)), nl=False)
        return
    installed = units.install(profile, config, user=account)
    if settings.as_json:
        print_json(installed)
        return
    say(f"wrote {installed.path}")
    for note in installed.notes:
        say(f"note: {note}")
    say("now:")
    for step in installed.next:
        say(f"  {step}")
