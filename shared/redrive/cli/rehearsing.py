"""`redrive classify`, `redrive policy` and `redrive rules test`: what the config would do.

The first two read the config file themselves, so that a rule can be tried before any daemon
has seen it. The last needs the errors that the daemon has recorded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click
import msgspec

from redrive.cli import kinds, words
from redrive.cli.completing import names
from redrive.cli.output import Column, print_fields, print_json, print_table, say
from redrive.cli.settings import Settings
from redrive.cli.verb import Noun, Verb
from redrive.config.values import format_duration
from redrive.errors import DaemonUnreachable, NotFound
from redrive.models import plain
from redrive.protocol.rehearsals import PolicyReply, RulesReply, ShowPolicy, TestRules
from redrive.protocol.rows import RuleChange

if TYPE_CHECKING:
    from redrive.policy import RetryPolicy

_TIMELINE = (
    Column("ATTEMPT", right=True),
    Column("AFTER", right=True),
    Column("SINCE THE FIRST", right=True),
    Column("BETWEEN"),
)
_CHANGES = (
    Column("JOB", right=True),
    Column("WAS"),
    Column("NOW"),
    Column("RULE", shrinks=True),
    Column("MESSAGE", shrinks=True),
)


@click.command(
    cls=Verb,
    examples=[
        "redrive classify 'connection refused'",
        "redrive classify --json 'quota exceeded for project 7'",
    ],
)
@click.argument("text")
@click.option("--task", metavar="NAME", help="As if this task had failed with it.")
@click.pass_obj
def classify(settings: Settings, text: str, task: str | None) -> None:
    """Show which rule would match an error that says TEXT.

    The rules are those of the config file, whether a daemon has read it or not.
    """
    from redrive.rules import Rulebook

    config = settings.whole_config().config
    if task is not None and task not in config.tasks:
        raise NotFound(f"there is no task {task!r}", hint=_there_are(config.tasks))
    shown = Rulebook(config.errors).classify_text(text, task)
    if settings.as_json:
        print_json(shown)
    else:
        shown["should_retry"] = "yes" if shown["should_retry"] else "no"
        print_fields((name.replace("_", " "), value) for name, value in shown.items())


@click.command(
    cls=Verb,
    examples=[
        "redrive policy default",
        "redrive policy fetch --json",
        "redrive policy ingest.parse",
    ],
)
@click.argument("name", shell_complete=names("retry", "tasks"))
@click.pass_obj
def policy(settings: Settings, name: str) -> None:
    """Print the timeline that a retry policy makes.

    NAME is that of a policy or of a task. Those of the config are read from the file; of the
    steps of pipelines, PIPELINE.STEP or PIPELINE.STEP@VERSION, a daemon knows.
    """
    from redrive.policy import resolve, timeline

    config = settings.whole_config().config
    if name in config.retry or name == "default":
        found = resolve(name, config.retry)
    elif name in config.tasks:
        found = resolve(config.tasks[name].retry, config.retry)
    else:
        found = _known_to_a_daemon(settings, name)
    attempts = timeline(found)
    if settings.as_json:
        print_json({"name": name, "policy": plain(found), "timeline": list(map(plain, attempts))})
        return
    plural = "" if found.max_attempts == 1 else "s"
    say(f"{found.max_attempts} attempt{plural}; unknown errors: {found.unknown}")
    print_table(
        _TIMELINE,
        [
            (
                each.attempt,
                format_duration(each.delay),
                format_duration(each.at),
                "" if each.at_min == each.at_max else f"{words.span(each.at_min)} and"
                f" {words.span(each.at_max)}",
            )
            for each in attempts
        ],
        empty="",
    )  # fmt: skip


def _known_to_a_daemon(settings: Settings, name: str) -> RetryPolicy:
    from redrive.policy import RetryPolicy

    try:
        with settings.client() as client:
            reply: PolicyReply = client.ask(ShowPolicy(name=name))
    except DaemonUnreachable:
        config = settings.whole_config().config
        raise NotFound(
            f"neither a retry policy nor a task is named {name!r} in the config, and no daemon"
            " answers that may know it as a step",
            hint=_there_are({"default", *config.retry, *config.tasks}),
        ) from None
    return msgspec.convert(reply.policy, RetryPolicy)


def _there_are(names: Iterable[str]) -> str:
    return f"there are {', '.join(sorted(names))}"


@click.group(cls=Noun)
def rules() -> None:
    """Try the [[errors]] rules of the config."""


@rules.command("test", examples=["redrive rules test --since 7d"])
@click.option("--since", type=kinds.duration, default="7d", help="How far back; default 7d.")
@click.pass_obj
def test_rules(settings: Settings, since: float) -> None:
    """Replay recorded errors against the rules of the file."""
    with settings.client() as client:
        reply: RulesReply = client.ask(TestRules(since=since), timeout=60.0)
    if settings.as_json:
        print_json(reply)
        return
    say(f"{reply.examined:,} errors examined, {len(reply.changed):,} would be judged otherwise")
    if reply.changed:
        print_table(_CHANGES, map(_change_row, reply.changed), empty="")


def _change_row(change: RuleChange) -> tuple[Any, ...]:
    return change.job, change.was, change.now, change.rule, change.message
