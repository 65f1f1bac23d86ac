"""`redrive schedules`: what fires when, and what became of the last times."""

from __future__ import annotations

from typing import Any

import click

from redrive.cli import words
from redrive.cli.output import Column, print_each, print_table
from redrive.cli.settings import Settings
from redrive.cli.short_lists import Choice, choice_options
from redrive.cli.verb import Verb
from redrive.protocol.queries import ListSchedules, SchedulePage
from redrive.protocol.rows import ScheduleRow

_COLUMNS = (
    Column("SCHEDULE"),
    Column("", coloured=True),
    Column("WHEN", shrinks=True),
    Column("NEXT"),
    Column("WHAT", shrinks=True),
    Column("LAST"),
    Column("MISSED"),
    Column("OVERLAP"),
)


@click.command(cls=Verb, examples=["redrive schedules", "redrive trigger nightly"])
@choice_options()
@click.pass_obj
def schedules(settings: Settings, /, **choice: Any) -> None:
    """List schedules with their next and their last slots."""
    with settings.client() as client:
        page: SchedulePage = client.ask(ListSchedules())
    rows = Choice(**choice).of(ScheduleRow, page.schedules, "schedule")
    if settings.as_json:
        print_each(rows)
    else:
        print_table(_COLUMNS, map(_row, rows), empty="no schedules")


def _row(schedule: ScheduleRow) -> tuple[object, ...]:
    now = words.now()
    fires = schedule.next and not schedule.paused
    upcoming = words.relative(schedule.next[0], now) if fires else None
    last = schedule.last[-1] if schedule.last else None
    return (
        schedule.name,
        "PAUSED" if schedule.paused else "",
        schedule.words,
        upcoming,
        schedule.what,
        last and f"{last.state or last.outcome} {words.relative(last.at, now)}",
        schedule.missed,
        schedule.overlap,
    )
