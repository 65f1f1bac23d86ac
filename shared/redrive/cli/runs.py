"""`redrive runs` and `redrive batches`: items on their way through pipelines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import click

from redrive.cli import listing, words
from redrive.cli.output import Column, print_each, print_table
from redrive.cli.settings import Settings
from redrive.cli.short_lists import Choice, choice_options, sort_option
from redrive.cli.verb import Verb
from redrive.models import Run
from redrive.protocol.queries import BatchPage, ListBatches
from redrive.protocol.rows import BatchRow, GateRow

_WITH_A_JOB = ("leased", "retry")
_RUNS = (
    Column("ID", right=True),
    Column("PIPELINE"),
    Column("STATE", coloured=True),
    Column("STATUS"),
    Column("STEPS"),
    Column("BATCH"),
    Column("KEY", shrinks=True),
    Column("AGE"),
)
_BATCHES = (
    Column("NAME", shrinks=True),
    Column("PIPELINE"),
    Column("RUNS", right=True),
    Column("RUNNING", right=True),
    Column("DONE", right=True),
    Column("FAILED", right=True),
    Column("CANCELLED", right=True),
    Column("GATES", shrinks=True),
    Column("PHASES", shrinks=True),
)


@click.command(
    cls=Verb,
    examples=["redrive runs", "redrive runs --where 'state:failed batch:2026-11'"],
)
@click.option(
    "--where",
    "-w",
    metavar="FILTER",
    help="By pipeline, state, batch, key and age, as in `state:failed batch:b* age<2h`; a word:"
    " in the key.",
)
@sort_option
@listing.page_options
@click.pass_obj
def runs(
    settings: Settings, where: str | None, sort: str | None, limit: int | None, after: str | None
) -> None:
    """List runs of pipelines, the newest first."""
    with settings.client() as client:

        def ask(count: int, cursor: str | None) -> listing.Page[Run]:
            page = client.runs(where or "", limit=count, after=cursor)
            return page.runs, page.after

        if sort is None:
            pages = listing.Pages(ask, listing.limit_for(settings, limit), after)
            listing.print_pages(settings, pages, _print_runs)
            return
        found = list(listing.Pages(ask, None, None))
    most = listing.limit_for(settings, limit) or max(1, len(found))
    rows = Choice(sort=sort, limit=most, after=after).of(Run, found, "run", "id")
    if settings.as_json:
        print_each(rows)
    else:
        _print_runs(rows)


@click.command(cls=Verb, examples=["redrive batches"])
@choice_options()
@click.pass_obj
def batches(settings: Settings, /, **chosen: Any) -> None:
    """List batches with their runs by state, gates and phases."""
    choice = Choice(**chosen)
    with settings.client() as client:

        def ask(count: int, cursor: str | None) -> listing.Page[BatchRow]:
            page: BatchPage = client.ask(ListBatches(limit=count, after=cursor))
            return page.batches, page.after

        rows = choice.of(BatchRow, list(listing.Pages(ask, choice.needs, None)), "batch")
    if settings.as_json:
        print_each(rows)
    else:
        print_table(_BATCHES, map(_batch_row, rows), empty="no batches")


def _print_runs(found: Iterable[Run]) -> None:
    now = words.now()
    print_table(_RUNS, (_run_row(run, now) for run in found), empty="no runs")


def _run_row(run: Run, now: int) -> tuple[object, ...]:
    done = sum(step.state == "done" for step in run.steps)
    steps = f"{done}/{len(run.steps)}" if run.steps else "-"
    age = words.relative(run.created_at, now)
    return run.id, run.pipeline, run.state, _status(run), steps, run.batch, run.key, age


def _status(run: Run) -> str:
    """What it shows, and which retry it is at."""
    retry = next((step.why for step in run.steps if step.state in _WITH_A_JOB and step.why), None)
    shown = "" if retry and run.status == run.state else run.status
    return ", ".join(filter(None, [shown, retry]))


def _batch_row(batch: BatchRow) -> tuple[object, ...]:
    now = words.now()
    gates = ", ".join(f"{gate.step} {_gate(gate, now)}" for gate in batch.gates)
    runs = f"{batch.runs} ({batch.forgotten} forgotten)" if batch.forgotten else batch.runs
    counts = (runs, batch.running, batch.done, batch.failed, batch.cancelled)
    return (batch.name, batch.pipeline, *counts, gates, "; ".join(_phases(batch)))


def _gate(gate: GateRow, now: int) -> str:
    if gate.opened_at:
        return "opened"
    if gate.opens_at:
        return f"opens {words.relative(gate.opens_at, now)}"
    # One for retries that wait for each other opens without a time.
    return f"waits for {gate.unsettled}" if gate.unsettled else "settled"


def _phases(batch: BatchRow) -> Iterator[str]:
    """`request 934 done, 10 dead`."""
    for step, states in batch.phases.items():
        yield f"{step} {', '.join(f'{n} {state}' for state, n in states.items())}"
