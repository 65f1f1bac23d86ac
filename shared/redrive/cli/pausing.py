"""`redrive pause`, `redrive resume` and `redrive trigger`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from redrive.cli import kinds
from redrive.cli.completing import names
from redrive.cli.output import print_done
from redrive.cli.settings import Settings
from redrive.cli.verb import Verb
from redrive.protocol.commands import ControlRedrive, PauseIt, ResumeIt, Trigger

if TYPE_CHECKING:
    from redrive.protocol.envelope import Request

_REDRIVE = "redrive:"


@click.command(
    cls=Verb,
    examples=["redrive pause bulk --why 'vendor is down'", "redrive pause schedule:nightly"],
)
@click.argument("name", shell_complete=names("queues", "tasks", "schedules"))
@click.option("--why", metavar="TEXT", help="Shown wherever the pause is.")
@click.pass_obj
def pause(settings: Settings, name: str, why: str | None) -> None:
    """Pause a queue, a task, a schedule or a redrive.

    NAME is queue:X, task:X, schedule:X, redrive:N, or X when only one has that name. What
    runs goes on; nothing more is started.
    """
    _ask(settings, _for_redrive(name, "pause") or PauseIt(name=name, why=why))


@click.command(cls=Verb, examples=["redrive resume bulk", "redrive resume queue:bulk"])
@click.argument("name", shell_complete=names("queues", "tasks", "schedules"))
@click.pass_obj
def resume(settings: Settings, name: str) -> None:
    """Let a paused queue, task, schedule or redrive go on.

    NAME is as for `redrive pause`.
    """
    _ask(settings, _for_redrive(name, "resume") or ResumeIt(name=name))


@click.command(cls=Verb, examples=["redrive trigger nightly"])
@click.argument("schedule", shell_complete=names("schedules"))
@click.pass_obj
def trigger(settings: Settings, schedule: str) -> None:
    """Fire SCHEDULE now, beside its slots."""
    _ask(settings, Trigger(schedule=schedule))


def _for_redrive(name: str, verb: str) -> ControlRedrive | None:
    if not name.startswith(_REDRIVE):
        return None
    return ControlRedrive(redrive=kinds.redrive(name.removeprefix(_REDRIVE)), verb=verb)


def _ask(settings: Settings, request: Request) -> None:
    with settings.client() as client:
        print_done(settings.as_json, client.ask(request))
