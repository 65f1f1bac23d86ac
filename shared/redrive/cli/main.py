"""`redrive`: the root of the command line, and what becomes of everything that goes wrong in it."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

import click
from click.exceptions import NoArgsIsHelpError

from redrive.cli.cleaning import clean_lines
from redrive.cli.settings import Settings
from redrive.cli.streams import bear_any_text, give_up_output, open_missing, what_failed
from redrive.cli.verb import LazyNoun
from redrive.cli.words import counted
from redrive.config import ConfigRejected
from redrive.errors import Exit, RedriveError

_INTERRUPTED = 130
_NO_READER = 141  # as a shell tells of SIGPIPE

# The verbs as the help shows them, each with its module beside this one.
_SECTIONS = {
    "Begin": {
        "up": "up",
        "demo": "demo",
        "console": "console",
        "status": "status",
        "doctor": "doctor",
    },
    "New work": {"enqueue": "enqueue", "start": "start", "trigger": "pausing"},
    "Look": {
        "jobs": "jobs",
        "runs": "runs",
        "batches": "runs",
        "groups": "groups",
        "queues": "queues",
        "schedules": "schedules",
        "nodes": "nodes",
        "outbox": "outbox",
        "show": "show",
        "why": "why",
        "events": "events",
        "logs": "logs",
        "wait": "wait",
    },
    "Act on jobs and runs": {
        "requeue": "acting",
        "cancel": "acting",
        "kill": "acting",
        "restart": "acting",
        "run-now": "acting",
        "hold": "acting",
        "release": "acting",
        "discard": "acting",
        "redrives": "redrives",
        "undo": "redrives",
    },
    "Act on queues and nodes": {"pause": "pausing", "resume": "pausing", "drain": "drain"},
    "Configure": {
        "config": "config",
        "reload": "reload",
        "classify": "rehearsing",
        "policy": "rehearsing",
        "rules": "rehearsing",
        "pipeline": "pipeline",
        "keys": "keys",
        "backup": "backup",
        "restore": "restore",
        "systemd": "systemd",
        "completion": "completion",
    },
}


_NOTES = {
    "Examples": [
        "redrive status",
        "redrive enqueue parse path=a.zip --wait",
        "redrive jobs --where 'state:dead error:timeout'",
        "redrive requeue --where 'state:dead error:timeout' --dry-run",
        "redrive COMMAND --help",
    ],
    "Exit codes": [
        "  0  done",
        "  1  it did not work, of a set for some; or nothing has that id or name",
        "  2  what was typed is wrong; or a set without --yes where nobody can be asked",
        " 69  no daemon answers, or another one runs already",
        " 70  a defect of redrive; the message names a report",
        " 75  refused now, allowed later: a cooldown, a full disk",
        " 77  not allowed: a permanent failure without --force, a cap, a role",
        " 78  something is wrong in the config",
        "124  the time given to wait ran out",
        "130  it was interrupted from the keyboard",
    ],
}


def _print_versions(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted:
        return
    import platform
    import sqlite3

    import zmq

    from redrive import __version__

    click.echo(f"redrive {__version__}")
    click.echo(f"SQLite  {sqlite3.sqlite_version}")
    click.echo(f"libzmq  {zmq.zmq_version()}")
    click.echo(f"Python  {platform.python_version()}")
    context.exit()


@click.group(
    cls=LazyNoun,
    sections=_SECTIONS,
    notes=_NOTES,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_print_versions,
    help="Show the versions of redrive and of what it stands on.",
)  # fmt: skip
@click.pass_context
def root(context: click.Context) -> None:
    """Run jobs that are allowed to fail: durable queues, honest retries, a console.

    Without a command, opens the console.
    """
    if os.environ.get("NO_COLOR"):
        context.color = False
    if context.invoked_subcommand is not None:
        return
    from redrive.cli.console import show_console

    show_console(context.ensure_object(Settings))


def main() -> NoReturn:
    # A reader that goes away ends us without a word, as it ends every filter.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    bear_any_text()
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """The exit code; everything that goes wrong becomes a sentence, a hint and a code."""
    try:
        open_missing()
        code = root.main(arguments, "redrive", standalone_mode=False, obj=Settings())
        sys.stdout.flush()
        return code if isinstance(code, int) else Exit.OK
    except (click.Abort, KeyboardInterrupt):
        return _INTERRUPTED
    except NoArgsIsHelpError as error:
        error.show()
        return Exit.USAGE
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "redrive"
        _complain(_in_our_words(error), f"`{command} --help` explains it")
        return Exit.USAGE
    except click.ClickException as error:
        _complain(_uncapitalised(error.format_message()))
        return Exit.FAILED
    except ConfigRejected as error:
        click.echo(clean_lines(error.message), err=True)
        _complain(
            f"the config was refused for {counted(len(error.problems), 'problem')}", error.hint
        )
        return error.exit_code
    except RedriveError as error:
        _complain(error.message, error.hint)
        return error.exit_code
    except BrokenPipeError:
        give_up_output()
        return _NO_READER
    except Exception as error:  # noqa: BLE001 the last place that can catch it
        known = what_failed(error) if isinstance(error, OSError) else None
        if known is not None:
            _complain(known.message, known.hint)
            return known.exit_code
        from redrive.cli.crashes import write_report

        _complain(
            f"that is a defect of redrive: {type(error).__name__}: {error}",
            f"the details are in {write_report('crash')}",
        )
        return Exit.INTERNAL


def _complain(message: str, hint: str = "") -> None:
    click.echo(clean_lines(f"redrive: {message}"), err=True)
    if hint:
        click.echo(clean_lines(f"  {hint}"), err=True)


def _in_our_words(error: click.UsageError) -> str:
    if isinstance(error, click.BadParameter) and not isinstance(error, click.MissingParameter):
        return f"{_label(error.param)}{error.message.rstrip('.')}"
    # The choices stand in the argument's own name already.
    return _uncapitalised(error.format_message().partition(" Choose from:")[0])


def _label(parameter: click.Parameter | None) -> str:
    """`--delay: `; an argument needs none, for the message says what it was."""
    return f"{parameter.opts[0]}: " if isinstance(parameter, click.Option) else ""


def _uncapitalised(message: str) -> str:
    return message[:1].lower() + message[1:].rstrip(".")
