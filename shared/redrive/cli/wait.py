"""`redrive wait`: until jobs and runs have ended."""

from __future__ import annotations

import click

from redrive.cli import kinds, waiting
from redrive.cli.output import print_json
from redrive.cli.settings import Settings
from redrive.cli.verb import Verb


@click.command(cls=Verb, examples=["redrive wait 12", "redrive wait 12 13 r7 --timeout 5m"])
@click.argument("ids", nargs=-1, required=True, type=kinds.ids)
@click.option("--timeout", type=kinds.duration, help="No longer than this.")
@click.pass_obj
def wait(settings: Settings, ids: tuple[list[str], ...], timeout: float | None) -> int:
    """Wait until every one of IDS has ended.

    Exits with 0 when all are done, 1 when some are not (dead, cancelled, failed), 124 when
    the time ran out; --json then tells the states they are in.
    """
    wanted = [id for several in ids for id in several]
    with settings.client() as client:
        ends = client.wait(*wanted, timeout=timeout)
        states = waiting.states(client, wanted, ends) if settings.as_json else ends
    if settings.as_json:
        for id in wanted:
            print_json({"id": id if id.startswith("r") else int(id), "state": states.get(id)})
    else:
        waiting.say_ends(ends)
    return waiting.exit_code(wanted, ends)
