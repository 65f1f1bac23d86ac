"""`redrive events`: the log, as it was and as it grows."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from redrive.cli import kinds, words
from redrive.cli.output import print_json, remark, say
from redrive.cli.settings import Settings
from redrive.cli.verb import Verb
from redrive.event_words import words_of
from redrive.models import Event

if TYPE_CHECKING:
    from redrive.blocking import Client

_LAST = 50  # for a person
_LAST_FOLLOWED = 10
_PAGE = 1000
_NEWEST = 10_000  # more of the newest are found only by reading all


@click.command(
    cls=Verb,
    examples=[
        "redrive events",
        "redrive events 12",
        "redrive events -f",
        "redrive events --after 4711 --json",
    ],
)
@click.argument("id", type=kinds.id, required=False)
@click.option("-f", "--follow", is_flag=True, help="Go on as they happen.")
@click.option("--after", type=kinds.seq, metavar="SEQ", help="Only what came later.")
@click.option("--last", type=kinds.count, metavar="N", help="Only the newest so many.")
@click.pass_obj
def events(
    settings: Settings, id: str | None, follow: bool, after: int | None, last: int | None
) -> None:
    """Print the event log, or the events of one job or run.

    Oldest first, and whole; without ID and --json only the newest. With --json each event has
    all its data: evidence, traceback, what the decision saw.
    """
    if last is None and after is None and id is None:
        if follow:
            last = _LAST_FOLLOWED
        elif not settings.as_json:
            last = _LAST
    log = _Log(settings)
    with settings.client() as client:
        head = _print_past(log, client, id, after or 0, last)
        if follow:
            _follow(log, client, id, head)


def _print_past(log: _Log, client: Client, id: str | None, after: int, last: int | None) -> int:
    """The seq up to which everything that was asked for has been printed."""
    if last is not None and id is None and last <= _NEWEST:
        page = client.events(last=last)
        if len(page.events) == last or not page.events or page.events[0].seq <= page.oldest:
            log.print_all(event for event in page.events if event.seq > after)
            return page.head
        # They have so much to say that one message does not hold them.
    found: list[Event] = []
    while True:
        page = client.events(id, after=after, limit=_PAGE)
        if last is None:
            log.print_all(page.events)
        else:
            found += page.events
        if not page.events:
            log.print_all(found[-last:] if last else [])
            return page.head
        after = page.events[-1].seq


def _follow(log: _Log, client: Client, id: str | None, seq: int) -> None:
    from redrive.client import Away

    for told in client.follow(seq):
        if isinstance(told, Event) and id in (None, told.run, str(told.job)):
            log.print_all([told])
        elif isinstance(told, Away):
            remark(f"redrive: {told.error.message}; waiting for it")


class _Log:
    """What is printed of the events; the day, with its zone, where a new one begins."""

    def __init__(self, settings: Settings) -> None:
        self._as_json = settings.as_json
        self._day = ""

    def print_all(self, events: Iterable[Event]) -> None:
        for event in events:
            if self._as_json:
                print_json(event)
            else:
                self._print(event)
        sys.stdout.flush()

    def _print(self, event: Event) -> None:
        day = words.day(event.at)
        if day != self._day:
            self._day = day
            click.secho(day, bold=True)
        say(_line(event))


def _line(event: Event) -> str:
    about = [str(event.job)] * (event.job is not None) + [event.run] * (event.run is not None)
    attempt = f"attempt {event.attempt}" if event.attempt else ""
    parts = [
        str(event.seq).rjust(8),
        words.clock_time(event.at),
        event.type.ljust(20),
        " ".join(filter(None, about)).ljust(8),
        (event.state or "").ljust(7),
        attempt.ljust(10),
        words_of(event),
    ]
    return "  ".join(parts).rstrip()
