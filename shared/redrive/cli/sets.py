"""A verb on a set: what it would do, the question, the doing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from redrive.cli import kinds, listing
from redrive.cli.outcomes import tell_one, tell_redrive, tell_set
from redrive.cli.output import remark
from redrive.cli.previews import ask_preview, does_something, print_preview
from redrive.cli.settings import Settings
from redrive.cli.words import counted
from redrive.errors import Exit, PartialResults, UsageProblem
from redrive.protocol.commands import Act, Acted
from redrive.protocol.rehearsals import PreviewReply

if TYPE_CHECKING:
    from redrive.blocking import Client

_TIMEOUT = 120.0  # seconds; a set may be large


def set_options() -> list[click.Parameter]:
    """Whom a verb is about, and how carefully to go about it."""
    return [
        click.Argument(["ids"], nargs=-1, type=kinds.ids, metavar="[ID]..."),
        click.Option(
            ["--where", "-w"],
            metavar="FILTER",
            callback=listing.check_filter,
            help="All that match, as in `state:dead queue:bulk error:timeout`.",
        ),
        click.Option(["--reason"], metavar="TEXT", help="Kept in the event log."),
        click.Option(["--dry-run"], is_flag=True, help="Only say what would be done."),
        click.Option(["--yes", "-y"], is_flag=True, help="Do not ask."),
    ]


def carry_out(
    settings: Settings,
    verb: str,
    *,
    ids: tuple[list[str], ...],
    where: str | None,
    dry_run: bool,
    yes: bool,
    **options: Any,
) -> int:
    """The options are those of `Act`."""
    wanted = list(dict.fromkeys(id for several in ids for id in several))
    _check_whom(verb, wanted, where)
    wish = Act(verb=verb, ids=wanted, where=where, again=yes, **options)
    is_set = where is not None or len(wanted) > 1
    with settings.client() as client:
        if dry_run:
            print_preview(settings, wish, ask_preview(client, wish, _TIMEOUT))
            return Exit.OK
        if is_set and not yes:
            _check_can_ask(wish)
            preview = ask_preview(client, wish, _TIMEOUT)
            print_preview(settings, wish, preview)
            if not (does_something(preview) and _agrees(settings, wish, preview)):
                remark("nothing was done")
                return Exit.FAILED if preview.total or preview.runs else Exit.OK
            if where is not None:  # what arrived since then was not agreed to
                wish = replace(wish, newest=preview.newest)
        acted = _act(client, wish, alone=not is_set)
    if _is_redrive(wish):
        return tell_redrive(settings, wish, acted)
    return tell_set(settings, wish, acted) if is_set else tell_one(settings, wish, acted)


def _is_redrive(wish: Act) -> bool:
    careful = (wish.canary, wish.pace, wish.stop_at)
    return wish.verb == "requeue" and any(each is not None for each in (wish.where, *careful))


def _check_whom(verb: str, ids: list[str], where: str | None) -> None:
    if where is not None and not _chooses(where):
        raise UsageProblem(
            f"the filter of --where {'only sorts' if where.strip() else 'is empty'}",
            hint="`--where 'id>0'` means every job there is",
        )
    if bool(ids) == bool(where):
        raise UsageProblem(
            f"{verb} wants either ids or --where",
            hint=f"`redrive {verb} 12`, or `redrive {verb} --where 'queue:bulk error:timeout'`",
        )


def _chooses(where: str) -> bool:
    from redrive.filters import parse

    return bool(parse(where).terms)


def _check_can_ask(wish: Act) -> None:
    if not _can_ask():
        raise UsageProblem(
            f"{wish.verb} of more than one wants --yes where nobody can be asked",
            hint="`--dry-run` shows what it would do",
        )


def _agrees(settings: Settings, wish: Act, preview: PreviewReply) -> bool:
    place = f" in {name}" if (name := settings.config.console.environment) else ""
    whom = counted(preview.fits, "job")
    if runs := sum(run.refused is None for run in preview.runs):
        whom = f"{counted(runs, 'run')}, {whom}"
    return click.confirm(f"{wish.verb} {whom}{place}?", err=True)


def _act(client: Client, wish: Act, *, alone: bool) -> Acted:
    acted: Acted = client.ask(wish, timeout=_TIMEOUT)
    if alone and acted.outcomes and _agrees_to_do_again(acted):
        acted = client.ask(replace(wish, again=True), timeout=_TIMEOUT)
    return acted


def _agrees_to_do_again(acted: Acted) -> bool:
    """Asked on a terminal only, of a run that has results already."""
    (outcome,) = acted.outcomes
    refused = outcome.refused
    if refused is None or refused.code != PartialResults.code or not _can_ask():
        return False
    return click.confirm(f"{outcome.id}: {refused.message}. Go on?", err=True)


def _can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()
