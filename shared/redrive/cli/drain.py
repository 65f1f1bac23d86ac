"""`redrive drain`: let a node finish what it runs, and no more."""

from __future__ import annotations

import click

from redrive.cli.output import print_done
from redrive.cli.settings import Settings
from redrive.cli.verb import Verb
from redrive.protocol.commands import Drain


@click.command(cls=Verb, examples=["redrive drain", "redrive drain --node w2 --no-stop"])
@click.option("--node", metavar="NAME", help="Default: the node that answers.")
@click.option("--stop/--no-stop", default=True, help="End the daemon when it is done.")
@click.pass_obj
def drain(settings: Settings, node: str | None, stop: bool) -> None:
    """Finish what runs and start nothing more.

    What `shutdown_grace` ends is retried without having used up an attempt.
    """
    with settings.client() as client:
        print_done(settings.as_json, client.ask(Drain(node=node, stop=stop)))
