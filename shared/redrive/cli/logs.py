"""`redrive logs`: what an attempt wrote."""

from __future__ import annotations

import codecs
import sys
import time
from typing import TYPE_CHECKING

import click

from redrive.cli import kinds
from redrive.cli.cleaning import clean_lines
from redrive.cli.output import print_json, remark
from redrive.cli.settings import Settings
from redrive.cli.verb import Verb
from redrive.errors import DaemonUnreachable, UsageProblem
from redrive.lifecycle import FINISHED

if TYPE_CHECKING:
    from redrive.blocking import Client

_POLL = 0.2  # seconds


@click.command(
    cls=Verb,
    examples=[
        "redrive logs 12",
        "redrive logs 12 -f",
        "redrive logs 12 --attempt 1 > first.log",
    ],
)
@click.argument("id", type=kinds.job)
@click.option("-f", "--follow", is_flag=True, help="Go on until the job is finished.")
@click.option(
    "--attempt",
    type=kinds.count,
    metavar="N",
    help="The Nth execution, as `redrive show` numbers them; default: the newest.",
)
@click.pass_obj
def logs(settings: Settings, id: int, follow: bool, attempt: int | None) -> None:
    """Print the output of an attempt of job ID, as it was written.

    On a terminal it is cleaned: what others wrote does not steer it.
    """
    if settings.as_json and follow:
        raise UsageProblem("--json prints one object, so there is nothing to follow")
    with settings.client() as client:
        if settings.as_json:
            _print_object(client, id, attempt)
        elif follow:
            _follow(client, id, attempt)
        else:
            _Output(client, id, attempt).print_new()


def _print_object(client: Client, id: int, attempt: int | None) -> None:
    reply = client.log(id, attempt=attempt)
    output = reply.data
    while reply.data and reply.offset < reply.size:
        reply = client.log(id, attempt=reply.execution, offset=reply.offset)
        output += reply.data
    if reply.warning:
        remark(f"redrive: {reply.warning}")
    print_json(
        {
            "id": id,
            "attempt": reply.attempt,
            "execution": reply.execution,
            "finished": reply.finished,
            "size": reply.size,
            "output": output.decode("utf-8", "replace"),
        }
    )


def _follow(client: Client, id: int, attempt: int | None) -> None:
    """Until the job has ended; a daemon that goes away meanwhile is waited for."""
    following = _Following(client, id, attempt)
    is_over = following.print_new()
    while not is_over:
        time.sleep(_POLL)
        try:
            is_over = following.print_new()
        except DaemonUnreachable as error:
            following.say_once(f"{error.message}; waiting for it")


class _Following:
    """One execution after the other, or one alone."""

    def __init__(self, client: Client, id: int, attempt: int | None) -> None:
        self._client = client
        self._id = id
        self._is_alone = attempt is not None
        self._execution = attempt
        self._output: _Output | None = None
        self._said = ""

    def print_new(self) -> bool:
        """Whether there is nothing more to come."""
        while True:
            if self._output is None:
                known = self._client.show_job(self._id)
                newest = known.history[-1].execution if known.history else 0
                self._execution = self._execution or newest or 1
                if self._execution > newest:
                    return known.job.state in FINISHED
                self._output = _Output(self._client, self._id, self._execution)
            if not self._output.print_new():
                return False
            if self._is_alone:
                return True
            assert self._execution is not None
            self._output, self._execution = None, self._execution + 1

    def say_once(self, text: str) -> None:
        if text != self._said:
            remark(f"redrive: {text}")
            self._said = text


class _Output:
    """One execution's output, printed as far as it has come."""

    def __init__(self, client: Client, id: int, execution: int | None) -> None:
        self._client = client
        self._id = id
        self._execution = execution
        self._offset: int = 0
        self._warned: str | None = None
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def print_new(self) -> bool:
        """Whether the attempt is over and all of it has been printed."""
        while True:
            reply = self._client.log(self._id, attempt=self._execution, offset=self._offset)
            if reply.warning and reply.warning != self._warned:
                remark(f"redrive: {reply.warning}")
                self._warned = reply.warning
            self._offset, self._execution = reply.offset, reply.execution
            self._write(reply.data)
            if not reply.data or self._offset >= reply.size:
                return reply.finished

    def _write(self, data: bytes) -> None:
        if sys.stdout.isatty():
            sys.stdout.write(clean_lines(self._decode(data)))
        else:
            sys.stdout.buffer.write(data)
        sys.stdout.flush()
