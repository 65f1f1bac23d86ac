"""`redrive why`: what a job waits for, and which rule decided about it."""

from __future__ import annotations

import click

from redrive.cli import kinds
from redrive.cli.output import print_fields, print_json, say
from redrive.cli.settings import Settings
from redrive.cli.verb import Verb
from redrive.cli.words import state_of
from redrive.models import plain


@click.command(cls=Verb, examples=["redrive why 12", "redrive why r7"])
@click.argument("id", type=kinds.id)
@click.pass_obj
def why(settings: Settings, id: str) -> None:
    """Say what a job waits for, or why it was retried or died."""
    with settings.client() as client:
        reply = client.why(id)
    if settings.as_json:
        print_json({**plain(reply), "id": id if id.startswith("r") else int(id)})
        return
    say(f"{reply.id} is {state_of(reply.state)}: {reply.text}")
    decided = reply.decision
    saw = {**(decided.saw if decided else {}), **reply.saw}
    rule = [("  rule", decided.rule)] if decided else []
    print_fields(rule + [(f"  {name}", value) for name, value in saw.items()])
    if reply.hint:
        say(f"  {reply.hint}")
