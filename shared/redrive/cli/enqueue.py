"""`redrive enqueue`: new jobs, one, many alike, or a file of them."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

import click

from redrive.cli import kinds, waiting
from redrive.cli.bulk import tell_bulk
from redrive.cli.completing import names
from redrive.cli.orders import OrderFile, given_args
from redrive.cli.output import print_json, say
from redrive.cli.settings import Settings
from redrive.cli.verb import Verb
from redrive.errors import UsageProblem
from redrive.models import plain
from redrive.protocol.commands import Enqueue, Enqueued, JobOrder

if TYPE_CHECKING:
    from redrive.blocking import Client

_BULK_TIMEOUT = 60.0  # seconds


@click.command(
    cls=Verb,
    examples=[
        "redrive enqueue parse path=a.zip retries=3",
        'redrive enqueue report --args \'{"month": "2026-11"}\' --queue bulk --delay 15m',
        "redrive enqueue sync --unique sync-crm --wait",
        "redrive enqueue noop --count 1000",
        "redrive enqueue parse --from-file jobs.ndjson",
    ],
)
@click.argument("task", shell_complete=names("tasks"))
@click.argument("pairs", nargs=-1, type=kinds.pair, metavar="[KEY=VALUE ...]")
@click.option("--args", type=kinds.json_object, metavar="JSON", help="The arguments as an object.")
@click.option(
    "--queue",
    metavar="NAME",
    shell_complete=names("queues"),
    help="Instead of the task's own queue.",
)
@click.option("--operation", metavar="NAME", help="Its place in the order of the queue.")
@click.option("--mode", metavar="NAME", help="How it came about: manual, bulk, auto.")
@click.option("--priority", type=int, metavar="N", help="Higher goes first.")
@click.option("--delay", type=kinds.duration, help="Not before so long from now.")
@click.option(
    "--at",
    type=kinds.time,
    help="Not before this time; without an offset, in the zone of this machine.",
)
@click.option("--unique", metavar="KEY", help="No second job while one with this key lives.")
@click.option("--hold", is_flag=True, help="Keep it until `redrive release`.")
@click.option("--count", type=kinds.count, metavar="N", help="So many alike.")
@click.option(
    "--from-file",
    type=click.File("rb"),
    metavar="FILE",
    help='Lines {"args": {...}, ...options}; - is standard input.',
)
@click.option("--wait", is_flag=True, help="Wait for the end; exit 1 unless all are done.")
@click.option("--timeout", type=kinds.duration, help="With --wait: no longer, then exit 124.")
@click.pass_obj
def enqueue(
    settings: Settings,
    /,
    task: str,
    pairs: tuple[tuple[str, Any], ...],
    args: dict[str, Any] | None,
    count: int | None,
    from_file: IO[bytes] | None,
    wait: bool,
    timeout: float | None,
    **options: Any,
) -> int:
    """Enqueue a job of TASK.

    A VALUE is JSON when it can be read as that, else text. Prints the id, the state, and
    whether the job was created: it was not when its unique key already lives.
    """
    if from_file is not None and count is not None:
        raise UsageProblem(
            "--count and --from-file do not go together", hint="a file has a line for each job"
        )
    waiting.check(wait, timeout)
    order = JobOrder(args=given_args(args, pairs), **options)
    with settings.client() as client:
        if from_file is not None:
            orders = OrderFile(from_file, order)
            with orders.naming_lines():
                reply = client.enqueue_many(task, orders)
        else:
            request = Enqueue(task=task, orders=[order], count=count or 1)
            reply = client.ask(request, timeout=_BULK_TIMEOUT)
        if from_file is not None or count is not None:
            return tell_bulk(settings, client, reply, wait, timeout)
        return _tell_one(settings, client, reply, wait, timeout)


def _tell_one(
    settings: Settings, client: Client, reply: Enqueued, wait: bool, timeout: float | None
) -> int:
    (job,) = reply.jobs
    if not settings.as_json:
        known = "" if job.created else ", its unique key already lives"
        say(f"job {job.id} {job.state}{known}")
    elif not wait:
        print_json(job)
    if not wait:
        return 0
    ends = client.wait(str(job.id), timeout=timeout)
    if settings.as_json:
        print_json({**plain(client.job(job.id)), "created": job.created})
    else:
        waiting.say_ends(ends)
    return waiting.exit_code([str(job.id)], ends)
