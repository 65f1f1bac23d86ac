"""What a verb would do, asked and shown: `--dry-run`, and the question before a set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive.cli.jobs import print_jobs
from redrive.cli.output import print_json, say
from redrive.cli.settings import Settings
from redrive.cli.words import by_state, counted
from redrive.protocol.commands import Act
from redrive.protocol.rehearsals import Preview, PreviewReply
from redrive.protocol.rows import RunPlan

if TYPE_CHECKING:
    from redrive.blocking import Client


def ask_preview(client: Client, wish: Act, timeout: float) -> PreviewReply:
    request = Preview(
        verb=wish.verb,
        ids=[int(id) for id in wish.ids if not id.startswith("r")],
        runs=[id for id in wish.ids if id.startswith("r")],
        where=wish.where,
        force=wish.force,
        from_step=wish.from_step,
        again=wish.again,
        canary=wish.canary,
        pace=wish.pace,
        stop_at=wish.stop_at,
    )
    reply: PreviewReply = client.ask(request, timeout=timeout)
    return reply


def does_something(preview: PreviewReply) -> bool:
    return preview.fits > 0 or any(run.refused is None for run in preview.runs)


def print_preview(settings: Settings, wish: Act, preview: PreviewReply) -> None:
    if settings.as_json:
        print_json(preview)
        return
    total = counted(preview.total, "job")
    states = by_state(preview.by_state)
    say(
        f"{wish.verb} would change {preview.fits:,} of {total}" + (f" ({states})" if states else "")
    )
    for why, count in preview.excluded.items():
        say(f"  not {count:,}: {why}")
    for run in preview.runs:
        say(f"  {_plan(run)}")
    if preview.sample:
        print_jobs(preview.sample)
        if (others := preview.fits - len(preview.sample)) > 0:
            say(f"and {others:,} more")


def _plan(run: RunPlan) -> str:
    if run.refused is not None:
        return f"{run.id}: not, {run.refused}"
    return f"{run.id}: {'step' if len(run.steps) == 1 else 'steps'} {', '.join(run.steps)}"
