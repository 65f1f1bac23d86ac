"""`redrive pipeline`: the catalog of definitions."""

from __future__ import annotations

from typing import IO

import click

from redrive.cli import kinds, words
from redrive.cli.output import Column, print_done, print_each, print_json, print_table, say
from redrive.cli.settings import Settings
from redrive.cli.verb import Noun
from redrive.errors import UsageProblem
from redrive.protocol.commands import AddPipeline
from redrive.protocol.queries import ListPipelines, PipelinePage, PipelineReply, ShowPipeline
from redrive.protocol.rows import PipelineRow

_COLUMNS = (
    Column("NAME"),
    Column("VERSION", right=True),
    Column("FROM"),
    Column("SINCE"),
    Column("STEPS", shrinks=True),
)


@click.group(cls=Noun)
def pipeline() -> None:
    """Register and look up pipelines."""


@pipeline.command(examples=["redrive pipeline add playbook.yaml"])
@click.argument("file", type=click.File("r", encoding="utf-8"))
@click.option(
    "--name",
    metavar="NAME",
    help="Instead of the one in the file, or the file's: letters, digits and _ - . : (at most 100).",
)
@click.pass_obj
def add(settings: Settings, file: IO[str], name: str | None) -> None:
    """Register the playbook FILE as a new version of its pipeline."""
    with settings.client() as client:
        request = AddPipeline(source=_text_of(file), name=name, file=_name_of(file))
        print_done(settings.as_json, client.ask(request))


@pipeline.command("list", examples=["redrive pipeline list"])
@click.pass_obj
def list_pipelines(settings: Settings) -> None:
    """List pipelines with their newest versions."""
    with settings.client() as client:
        page: PipelinePage = client.ask(ListPipelines())
    if settings.as_json:
        print_each(page.pipelines)
    else:
        print_table(_COLUMNS, map(_row, page.pipelines), empty="no pipelines")


@pipeline.command(
    examples=["redrive pipeline show ingest", "redrive pipeline show ingest --version 2"]
)
@click.argument("name")
@click.option("--version", type=kinds.count, metavar="N", help="Default: the newest.")
@click.pass_obj
def show(settings: Settings, name: str, version: int | None) -> None:
    """Show a pipeline: its steps as a graph, and its text."""
    with settings.client() as client:
        reply: PipelineReply = client.ask(ShowPipeline(name=name, version=version))
    if settings.as_json:
        print_json(reply)
        return
    say(f"{reply.name} version {reply.version}")
    say(reply.graph)
    say(f"\n{reply.source}")


def _text_of(file: IO[str]) -> str:
    try:
        return file.read()
    except UnicodeDecodeError as error:
        raise UsageProblem(
            f"{file.name} is no UTF-8 text: {error.reason} at byte {error.start}",
            hint="a playbook is YAML or TOML",
        ) from None


def _name_of(file: IO[str]) -> str | None:
    """Standard input has none."""
    return None if file.name == "<stdin>" else file.name


def _row(row: PipelineRow) -> tuple[object, ...]:
    since = words.relative(row.created_at, words.now())
    return row.name, row.version, row.origin, since, " → ".join(row.steps)
