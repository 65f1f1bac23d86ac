"""`redrive start`: runs of a pipeline, one or a file of them."""

from __future__ import annotations

from typing import IO, Any

import click

from redrive.cli import kinds, waiting
from redrive.cli.bulk import tell_bulk
from redrive.cli.completing import names
from redrive.cli.orders import OrderFile, given_args
from redrive.cli.output import print_json, say
from redrive.cli.settings import Settings
from redrive.cli.verb import Verb
from redrive.models import plain
from redrive.protocol.commands import RunOrder


@click.command(
    cls=Verb,
    examples=[
        "redrive start ingest path=a.zip",
        "redrive start fetch --batch 2026-11 --key item-17 item=17",
        "redrive start fetch --batch 2026-11 --from-file items.ndjson",
    ],
)
@click.argument("pipeline", shell_complete=names("pipelines"))
@click.argument("pairs", nargs=-1, type=kinds.pair, metavar="[KEY=VALUE ...]")
@click.option("--args", type=kinds.json_object, metavar="JSON", help="The arguments as an object.")
@click.option("--batch", metavar="NAME", help="The batch that the run joins.")
@click.option("--key", metavar="KEY", help="What the run is about: one run of it at a time.")
@click.option("--mode", metavar="NAME", help="How it came about: manual, bulk, auto.")
@click.option(
    "--from-file",
    type=click.File("rb"),
    metavar="FILE",
    help='Lines {"args": {...}, "key": ..., "batch": ...}; - is standard input.',
)
@click.option("--wait", is_flag=True, help="Wait for the end of the run; exit 1 unless done.")
@click.option("--timeout", type=kinds.duration, help="With --wait: no longer, then exit 124.")
@click.pass_obj
def start(
    settings: Settings,
    pipeline: str,
    pairs: tuple[tuple[str, Any], ...],
    args: dict[str, Any] | None,
    batch: str | None,
    key: str | None,
    mode: str | None,
    from_file: IO[bytes] | None,
    wait: bool,
    timeout: float | None,
) -> int:
    """Start a run of PIPELINE.

    A VALUE is JSON when it can be read as that, else text. Prints the run's id.
    """
    waiting.check(wait, timeout)
    order = RunOrder(args=given_args(args, pairs), key=key, batch=batch)
    with settings.client() as client:
        if from_file is not None:
            orders = OrderFile(from_file, order)
            with orders.naming_lines():
                many = client.start_many(pipeline, orders, mode=mode)
            return tell_bulk(settings, client, many, wait, timeout)
        started = client.start(pipeline, order.args, key=key, batch=batch, mode=mode)
        id, created = started.first_id, bool(started.created)
        if not settings.as_json:
            say(f"run {id} {'started' if created else 'was started before'}")
        ends = client.wait(id, timeout=timeout) if wait else {}
        if settings.as_json:
            print_json({**plain(client.run(id)), "created": created})
        elif wait:
            waiting.say_ends(ends)
        return waiting.exit_code([id], ends) if wait else 0
