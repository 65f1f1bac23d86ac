"""The verbs on jobs and runs, by ids or by filter."""

from __future__ import annotations

from typing import Any

import click

from redrive.cli import kinds
from redrive.cli.sets import carry_out, set_options
from redrive.cli.settings import Settings
from redrive.cli.verb import Verb


def _command(verb: str, help: str, examples: list[str], *options: click.Parameter) -> click.Command:
    @click.pass_obj
    def act(settings: Settings, /, **given: Any) -> int:
        return carry_out(settings, verb, **given)

    parameters = [*set_options(), *options]
    return Verb(verb, callback=act, params=parameters, help=help, examples=examples)


requeue = _command(
    "requeue",
    """Give dead or cancelled jobs or failed runs another life.

    What --where, --canary, --pace or --stop-at chooses is a redrive: its id is printed,
    `redrive redrives` shows how it goes and `redrive undo` takes it back. With one of the last
    three, or for more than 1,000 jobs, it is worked off in the background.

    Permanent failures, and jobs that were requeued a moment ago or too often, are refused
    without --force. To make all the results of a run again is asked about first, or --yes.""",
    [
        "redrive requeue 12",
        "redrive requeue r7 --from parse",
        "redrive requeue --where 'state:dead error:timeout' --dry-run",
        "redrive requeue -w 'state:dead queue:bulk' --canary 1 --pace 50/min --stop-at 20% --yes",
    ],
    click.Option(
        ["--from", "from_step"],
        metavar="STEP",
        help="Of a run: from this step on; what follows it is cleared.",
    ),
    click.Option(
        ["--force"], is_flag=True, help="Permanent failures too, without cooldown and cap."
    ),
    click.Option(
        ["--canary"],
        type=kinds.count,
        metavar="N",
        help="So many first; the others once these are done.",
    ),
    click.Option(["--pace"], type=kinds.rate, metavar="RATE", help="No faster: 50/min."),
    click.Option(
        ["--stop-at"], type=kinds.share, metavar="SHARE", help="Stop when so many fail: 20%."
    ),
)
cancel = _command(
    "cancel",
    """Cancel jobs or runs.

    A waiting job is cancelled at once; a running one is asked to end, and killed when its
    grace is over.""",
    ["redrive cancel 12", "redrive cancel --where 'queue:bulk state:queued' --dry-run"],
)
kill = _command(
    "kill",
    """End jobs or runs without grace.

    What waits is cancelled at once; with a running job ends every process that it started.""",
    ["redrive kill 12", "redrive kill 12 13 14 --yes"],
)
restart = _command(
    "restart",
    "End the running attempt and run the job again now.",
    ["redrive restart 12"],
)
run_now = _command(
    "run-now",
    "Drop the wait that remains: the job is due now.",
    ["redrive run-now 12", "redrive run-now --where 'state:retry task:send_*' --yes"],
)
hold = _command(
    "hold",
    "Keep waiting jobs from being started.",
    ["redrive hold 12 --reason 'the customer asked us to wait'"],
)
release = _command(
    "release",
    "Let held jobs go.",
    ["redrive release 12", "redrive release --where state:held --yes"],
)
discard = _command(
    "discard",
    "Remove dead or cancelled jobs.\n\nTheir history and output go with them; there is no way back.",
    ["redrive discard 12", "redrive discard --where 'state:dead age>30d' --dry-run"],
)
