"""A verb on a set: what it would do, the question, the doing, one result each."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from redrive.cli import kinds, listing
from redrive.cli.jobs import print_jobs
from redrive.cli.output import print_json, remark, say
from redrive.cli.settings import Settings
from redrive.errors import Exit, PartialResults, UsageProblem
from redrive.models import plain
from redrive.protocol.commands import Act, Acted, Outcome
from redrive.protocol.envelope import Refusal
from redrive.protocol.queries import Preview, PreviewReply

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
    if bool(wanted) == bool(where):
        raise UsageProblem(
            f"{verb} wants either ids or --where",
            hint=f"`redrive {verb} 12`, or `redrive {verb} --where 'queue:bulk error:timeout'`",
        )
    wish = Act(verb=verb, ids=wanted, where=where, again=yes, **options)
    is_set = where is not None or len(wanted) > 1
    with settings.client() as client:
        if dry_run:
            _print_preview(settings, wish, _preview(client, wish))
            return Exit.OK
        if is_set and not yes:
            newest = _confirm(settings, client, wish)
            if newest is None:
                remark("nothing was done")
                return Exit.FAILED
            if where is not None:
                wish = replace(wish, newest=newest)
        acted: Acted = client.ask(wish, timeout=_TIMEOUT)
        alone = acted.outcomes[0] if acted.outcomes and not is_set else None  # a redrive has none
        if alone is not None and _agrees_to_do_again(alone):
            acted = client.ask(replace(wish, again=True), timeout=_TIMEOUT)
    if acted.redrive is not None:
        return _tell_redrive(settings, acted.redrive, acted.total)
    return _tell_set(settings, wish, acted) if is_set else _tell_one(settings, wish, acted)


def _preview(client: Client, wish: Act) -> PreviewReply:
    jobs = [int(id) for id in wish.ids if not id.startswith("r")]
    for id in wish.ids:
        if id.startswith("r"):
            jobs += [step.job for step in client.run(id).steps if step.job is not None]
    request = Preview(verb=wish.verb, ids=jobs, where=wish.where, force=wish.force)
    reply: PreviewReply = client.ask(request, timeout=_TIMEOUT)
    return reply


def _print_preview(settings: Settings, wish: Act, preview: PreviewReply) -> None:
    if settings.as_json:
        print_json(preview)
        return
    states = ", ".join(f"{count:,} {state}" for state, count in preview.by_state.items())
    say(f"{wish.verb} would change {preview.fits:,} of {preview.total:,} jobs ({states or 'none'})")
    for why, count in preview.excluded.items():
        say(f"  not {count:,}: {why}")
    if preview.sample:
        print_jobs(preview.sample)


def _confirm(settings: Settings, client: Client, wish: Act) -> int | None:
    """The newest id of what was agreed to; later arrivals are not part of it."""
    if not _can_ask():
        raise UsageProblem(
            f"{wish.verb} of more than one wants --yes where nobody can be asked",
            hint="`--dry-run` shows what it would do",
        )
    preview = _preview(client, wish)
    _print_preview(settings, wish, preview)
    place = f" in {name}" if (name := settings.config.console.environment) else ""
    agreed = click.confirm(f"{wish.verb} {preview.fits:,} jobs{place}?", err=True)
    return preview.newest if agreed else None


def _agrees_to_do_again(outcome: Outcome) -> bool:
    """Asked on a terminal only, of a run that has results already."""
    refused = outcome.refused
    if refused is None or refused.code != PartialResults.code or not _can_ask():
        return False
    return click.confirm(f"{refused.message}. Go on?", err=True)


def _can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _tell_redrive(settings: Settings, redrive: int, total: int) -> int:
    if settings.as_json:
        print_json({"redrive": redrive, "total": total})
    else:
        say(f"redrive {redrive}: {total:,} jobs")
        say(f"  `redrive redrives` shows how it goes, `redrive undo {redrive}` takes it back")
    return Exit.OK


def _tell_one(settings: Settings, wish: Act, acted: Acted) -> int:
    (outcome,) = acted.outcomes
    if outcome.refused is not None:
        from redrive.client.refusals import error_of

        refused = outcome.refused
        raise error_of(
            Refusal(
                code=refused.code,
                message=f"{wish.verb} {outcome.id}: {refused.message}",
                hint=refused.hint,
                retry_after=refused.retry_after,
                exit_code=refused.exit_code,
            )
        )
    _print_outcome(settings, wish, outcome)
    return Exit.OK


def _tell_set(settings: Settings, wish: Act, acted: Acted) -> int:
    for outcome in acted.outcomes:
        _print_outcome(settings, wish, outcome)
    done = sum(outcome.done for outcome in acted.outcomes)
    if not settings.as_json:
        say(f"{wish.verb}: {done:,} of {len(acted.outcomes):,} done")
    return Exit.OK if done == len(acted.outcomes) else Exit.FAILED


def _print_outcome(settings: Settings, wish: Act, outcome: Outcome) -> None:
    if settings.as_json:
        id = outcome.id
        print_json({**plain(outcome), "id": int(id) if id.isdecimal() else id})
    elif outcome.refused is not None:
        say(f"{outcome.id}: not done, {outcome.refused.message}")
    else:
        say(f"{outcome.id}: {wish.verb}, it is {outcome.state or 'gone'}")
