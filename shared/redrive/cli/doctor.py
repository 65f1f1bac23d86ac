"""`redrive doctor`: what is not as it should be, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from redrive.cli.output import print_each, say
from redrive.cli.settings import Settings
from redrive.cli.verb import Verb
from redrive.doctor import local_checks
from redrive.errors import Exit, RedriveError
from redrive.protocol.queries import Doctor, DoctorReply
from redrive.protocol.rows import Check

if TYPE_CHECKING:
    from redrive.blocking import Client


@click.command(cls=Verb, examples=["redrive doctor"])
@click.pass_obj
def doctor(settings: Settings) -> int:
    """Check the config, the daemon and the way to it.

    Exits with 1 when something was found.
    """
    checks = list(_checks(settings))
    if settings.as_json:
        print_each(checks)
    else:
        for check in checks:
            say(f"{'ok ' if check.ok else 'BAD'}  {check.name}: {check.text}")
            if check.hint and not check.ok:
                say(f"       {check.hint}")
    return Exit.OK if all(check.ok for check in checks) else Exit.FAILED


def _checks(settings: Settings) -> Iterator[Check]:
    try:
        loaded = settings.whole_config(look_around=True)
        if not loaded.problems:
            yield Check(name="config", ok=True, text=f"{loaded.config.path} is right")
        for problem in loaded.problems:
            yield Check(name="config", ok=False, text=str(problem))
        yield from local_checks(loaded)
    except RedriveError as error:
        yield _finding("config", error)
    try:
        with settings.client() as client:
            welcome = client.hello()
            text = f"redrive {welcome.program} answers, pid {welcome.pid}"
            yield Check(name="daemon", ok=True, text=text)
            yield _role(client)
            reply: DoctorReply = client.ask(Doctor())
            yield from reply.checks
    except RedriveError as error:
        yield _finding("daemon", error)


def _role(client: Client) -> Check:
    try:
        who = client.hello(as_operator=True).who
    except RedriveError as error:
        return Check(name="role", ok=True, text=f"you may look, not change: {error.message}")
    return Check(name="role", ok=True, text=f"you may change things, as {who}")


def _finding(name: str, error: RedriveError) -> Check:
    return Check(name=name, ok=False, text=error.message, hint=error.hint)
