"""`redrive status`: the whole at a glance."""

from __future__ import annotations

import sys
import time

import click

from redrive.cli import words
from redrive.cli.nodes import print_nodes
from redrive.cli.output import print_heading, print_json, remark, say
from redrive.cli.queues import print_queues
from redrive.cli.settings import Settings
from redrive.cli.verb import Verb
from redrive.errors import DaemonUnreachable
from redrive.protocol.queries import StatusReply

_EVERY = 1.0  # seconds
_CLEAR = "\x1b[H\x1b[J"


@click.command(
    cls=Verb, examples=["redrive status", "redrive status --watch", "redrive status --json"]
)
@click.option("--watch", is_flag=True, help="Print it again each second.")
@click.pass_obj
def status(settings: Settings, watch: bool) -> None:
    """Show counts, queues, nodes and what needs attention."""
    print_status(settings, watch=watch)


def print_status(settings: Settings, *, watch: bool = False) -> None:
    with settings.client() as client:
        _show(settings, client.status(), before=_CLEAR if watch else "")
        while watch:
            time.sleep(_EVERY)
            try:
                _show(settings, client.status(), before=_CLEAR)
            except DaemonUnreachable as error:
                remark(f"redrive: {error.message}; waiting for it")


def _show(settings: Settings, reply: StatusReply, *, before: str) -> None:
    if settings.as_json:
        print_json(reply)
    else:
        if sys.stdout.isatty():
            sys.stdout.write(before)  # not a colour, so NO_COLOR does not forbid it
        _print(reply)
    sys.stdout.flush()


def _print(reply: StatusReply) -> None:
    environment = f"{reply.environment}, " if reply.environment else ""
    say(f"{environment}node {reply.node} {reply.state}, up {words.span(reply.uptime)}")
    if reply.trouble:
        say(f"trouble: {reply.trouble}")
    say(words.by_state(reply.states) or "no jobs")
    aside = {
        "scheduled for later": sum(queue.scheduled or 0 for queue in reply.queues),
        "held": sum(queue.held for queue in reply.queues),
        "of paused tasks": sum(queue.of_paused_tasks for queue in reply.queues),
    }
    if told := ", ".join(f"{n:,} {what}" for what, n in aside.items() if n):
        say(f"waiting for more than a slot: {told}")
    print_heading("Queues")
    print_queues(reply.queues)
    print_heading("Nodes")
    print_nodes(reply.nodes)
    if reply.due:
        print_heading("Next")
        now = words.now()
        for due in reply.due[:10]:
            say(f"  {words.relative(due.at, now):>10}  {due.n:,} {due.kind}  {due.name}")
    _print_attention(reply)


def _print_attention(reply: StatusReply) -> None:
    # A pause is told with its reason, below.
    found = [attention for attention in reply.attention if attention.kind != "paused"]
    print_heading("Needs attention" if found or reply.paused else "Nothing needs attention")
    for attention in found:
        say(f"  {attention.severity}: {attention.text}")
    for pause in reply.paused:
        why = f": {pause.why}" if pause.why else ""
        since = words.absolute(pause.at)
        say(f"  {pause.kind} {pause.name} is paused since {since} by {pause.by}{why}")
