"""`redrive console`: the console, told what this terminal can do."""

from __future__ import annotations

import click

from redrive.cli.settings import Settings
from redrive.cli.terminal import has_terminal
from redrive.cli.verb import Verb


@click.command(cls=Verb, examples=["redrive console --read-only", "redrive console --ascii"])
@click.option("--read-only", is_flag=True, help="Look, change nothing.")
@click.option("--ascii", is_flag=True, help="Plain characters in place of glyphs.")
@click.option("--no-mouse", is_flag=True, help="Leave the mouse to the terminal.")
@click.pass_obj
def console(settings: Settings, /, **chosen: bool) -> None:
    """Open the console.

    So does `redrive` alone. Without a terminal there is no console: it prints the status.
    """
    show_console(settings, *(f"--{name.replace('_', '-')}" for name, on in chosen.items() if on))


def show_console(settings: Settings, *options: str) -> None:
    """In place of this process; where there is no terminal, the status."""
    if has_terminal() and not settings.as_json:
        from redrive.cli.up import open_console

        open_console(settings, *options)
    from redrive.cli.status import print_status

    print_status(settings)
