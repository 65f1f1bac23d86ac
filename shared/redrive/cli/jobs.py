"""`redrive jobs`: the list of jobs."""

from __future__ import annotations

from collections.abc import Iterable

import click

from redrive.cli import listing, words
from redrive.cli.output import Column, print_table
from redrive.cli.settings import Settings
from redrive.cli.verb import Verb
from redrive.clock import SECOND
from redrive.lifecycle import FINISHED, JobState
from redrive.models import Job

_COLUMNS = (
    Column("ID", right=True),
    Column("TASK", shrinks=True),
    Column("STATE", coloured=True),
    Column("ATT", right=True),
    Column("NEXT / RAN"),
    Column("QUEUE"),
    Column("NODE"),
    Column("LAST ERROR", shrinks=True),
)


@click.command(
    cls=Verb,
    examples=[
        "redrive jobs",
        "redrive jobs --where 'state:dead queue:bulk error:timeout age>2h'",
        "redrive jobs --sort=-attempt --limit 10",
        "redrive jobs --json | jq .id",
    ],
)
@listing.where_option
@click.option("--sort", metavar="KEY", help="Order by id, state, queue, next, ...; `-` turns it.")
@listing.page_options
@click.pass_obj
def jobs(
    settings: Settings,
    where: str | None,
    sort: str | None,
    limit: int | None,
    after: str | None,
) -> None:
    """List jobs, the newest first."""
    with settings.client() as client:

        def ask(count: int, cursor: str | None) -> listing.Page[Job]:
            page = client.jobs(where or "", sort=sort, limit=count, after=cursor)
            return page.jobs, page.after

        pages = listing.Pages(ask, listing.limit_for(settings, limit), after)
        listing.print_pages(settings, pages, print_jobs)


def print_jobs(found: Iterable[Job]) -> None:
    now = words.now()
    print_table(_COLUMNS, (_row(job, now) for job in found), empty="no jobs")


def _row(job: Job, now: int) -> tuple[object, ...]:
    return (
        job.id,
        job.task,
        words.state_word(job, now),
        f"{job.attempts}/{job.max_attempts}",
        _time(job, now),
        job.queue,
        job.node,
        error_text(job),
    )


def _time(job: Job, now: int) -> str:
    if job.state == JobState.LEASED:
        return words.span((now - (job.started_at or now)) / SECOND)
    if job.state in FINISHED:
        return words.relative(job.finished_at, now)
    if job.available_at is not None and job.available_at > now:
        return words.relative(job.available_at, now)
    return "-"


def error_text(job: Job) -> str:
    return f"{job.error.error_type}: {job.error.message}" if job.error else "-"
