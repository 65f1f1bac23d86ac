"""docs/commands.md, from the commands' own help and from the tables of the filter language."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from redrive.cli.main import root
from redrive.cli.verb import LazyNoun, Verb
from redrive.filters.terms import ARGUMENT, KEYS, SORT_KEYS, WORDS, Kind

_BEGINNING = """\
# Commands

`redrived --config FILE` is the daemon, in the foreground; it logs to standard error. `redrive` is
everything else; without a command, in a terminal, it opens the console. This page is `redrive
--help` and `redrive COMMAND --help`, written by `make docs`. `redrive completion bash` (zsh, fish)
prints what completes commands and names in a shell.

`--config FILE` and `--json` work with every command, before or after it. The config is the one
named, else `$REDRIVE_CONFIG`, `./config.toml`, `~/.config/redrive/config.toml`,
`/etc/redrive/config.toml`. With `--json` one thing is one object, and a list one object per line;
times are ISO 8601 in UTC, durations seconds. For people times are told in the zone of the machine
on which the command runs, and the zone is named. Errors are a sentence and a hint on standard error.

A command that asks the daemon needs no more of the config than its address. Where the file is
spoilt elsewhere, even so that it is no TOML any more, the command says so and goes on; where
`[daemon]` or `[bus]` themselves are, it guesses nothing and exits with 78.

| exit code | means |
|---|---|
| 0 | done |
| 1 | what was asked for did not work, of a set some of it; or nothing has that id or name |
| 2 | what was typed is wrong, whatever there is; or a set without `--yes` where nobody can be asked |
| 69 | no daemon answers, or another one runs already |
| 70 | a defect of redrive; the message names a report |
| 75 | refused now, allowed later: a cooldown, a full disk |
| 77 | not allowed: a permanent failure without `--force`, a cap, a role; all results of a run made again without `--yes`, where nobody can be asked |
| 78 | something is wrong in the config; it is named by its line |
| 124 | the time given to `wait` or `--wait` ran out |
| 130 | it was interrupted from the keyboard |

A set of one has the code of its one refusal, a larger one 0 or 1. A filter that matches nothing is no
failure, and neither is a `--dry-run` that says that nothing would be done. What cannot be written
to standard output exits with 1 and says so; a reader that goes away ends a command silently.

## Filters

The same language in `--where` and behind `/` in the console, where it completes itself:
`state:dead,retry queue:mail task:send_* !error:timeout attempt>3 age>10m "peer closed"`.

- Another key narrows, the same key again widens. `!` turns a term round, `*` stands for anything,
  quotes take everything literally.
- `>`, `>=`, `<` and `<=` always narrow: `attempt>1 attempt<5` is a range.
- A word without a key is looked for in the task's name, the last error and the arguments.
- The keys below are those of jobs. `redrive runs` knows `pipeline`, `state`, `batch`, `key` and
  `age`, and looks for other words in the key: `batch:2026-* !state:done age>1h`.
- `redrive queues`, `batches`, `schedules` and `nodes` know the keys that their `--json` shows, and
  look for other words in the name: `priority>=100 paused:true`. Numbers can be compared; what
  holds several values fits with any of them. Batches know `age`, too.

| key | takes |
|---|---|
"""
_COMMON = ("config", "as_json", "help")
_BOUND = re.compile(r" *\[x>=[01]\]")
_TAKES = {
    Kind.NAME: "a name, `*` allowed",
    Kind.RUN: "a run: `r7`",
    Kind.NUMBER: "a number",
    Kind.SPAN: "a duration: `10m`, `2h`",
    Kind.DAY: "the day on which it ended, by UTC: `2026-09-21`",
}


def rendered() -> str:
    return _BEGINNING + "".join(_filter_keys()) + "".join(_commands())


def verbs() -> Iterator[tuple[str, Verb]]:
    """Every command that does something, by what one types."""
    context = click.Context(root)
    for name in root.list_commands(context):
        command = root.get_command(context, name)
        if isinstance(command, click.Group):
            inner = click.Context(command)
            for each in command.list_commands(inner):
                verb = command.get_command(inner, each)
                assert isinstance(verb, Verb)
                yield f"{name} {each}", verb
        else:
            assert isinstance(command, Verb)
            yield name, command


def _filter_keys() -> Iterator[str]:
    for key, kind in KEYS.items():
        takes = _TAKES[kind] if kind in _TAKES else ", ".join(f"`{word}`" for word in WORDS[key])
        yield f"| `{key}` | {takes} |\n"
    yield f"| `{ARGUMENT}NAME` | a value in the arguments: `arg.user.id:42` |\n"
    keys = ", ".join(f"`{key}`" for key in SORT_KEYS)
    yield f"| `sort` | what to sort by, `-` before it for the other way: {keys} |\n"


def _commands() -> Iterator[str]:
    assert isinstance(root, LazyNoun)
    by_name = dict(verbs())
    for title, homes in root.sections.items():
        yield f"\n## {title}\n"
        for name, verb in by_name.items():
            if name.split()[0] in homes:
                yield _command(name, verb)


def _command(name: str, verb: Verb) -> str:
    context = click.Context(verb, info_name=f"redrive {name}")
    usage = " ".join(verb.collect_usage_pieces(context)).removeprefix("[OPTIONS]").strip()
    parts = [f"\n### redrive {name}\n", f"`redrive {' '.join(filter(None, [name, usage]))}`\n"]
    parts.append(inspect.cleandoc(verb.help or "") + "\n")
    if options := _options(verb, context):
        parts.append(f"| option | |\n|---|---|\n{options}")
    parts.append("```sh\n" + "".join(f"{example}\n" for example in verb.examples) + "```\n")
    return "\n".join(parts)


def _options(verb: Verb, context: click.Context) -> str:
    rows = ""
    for option in verb.params:
        record = option.get_help_record(context)
        if isinstance(option, click.Option) and record and option.name not in _COMMON:
            names, words = (text.replace("|", "\\|") for text in record)
            rows += f"| `{names}` | {_BOUND.sub('', words)} |\n"
    return rows
