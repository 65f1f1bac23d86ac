"""How the verbs are made: options that all of them take, examples, loading when used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

from redrive.cli.settings import Settings


def common_options() -> list[click.Parameter]:
    """`--config` and `--json`, which work before the verb and after it."""
    return [
        click.Option(
            ["--config"],
            metavar="FILE",
            expose_value=False,
            callback=_take_config,
            help="The config to read; default: $REDRIVE_CONFIG, ./config.toml,"
            " ~/.config/redrive/config.toml, /etc/redrive/config.toml.",
        ),
        click.Option(
            ["--json", "as_json"],
            is_flag=True,
            expose_value=False,
            callback=_take_json,
            help="Print JSON: one object for one thing, one per line for a list.",
        ),
    ]


def _take_config(context: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        context.ensure_object(Settings).config_path = value


def _take_json(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        context.ensure_object(Settings).as_json = True


class Verb(click.Command):
    """A command that shows how it is used."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += common_options()
        self.examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # The filters of runs and of short lists are languages of their own, told in the option.
        if any(option.name == "where" and option.callback for option in self.params):
            _write_filters(formatter)
        _write_lines(formatter, "Examples", self.examples)


def _write_filters(formatter: click.HelpFormatter) -> None:
    from redrive.filters.terms import ARGUMENT, KEYS

    with formatter.section("Filters"):
        formatter.write_text(
            "A key narrows, its values widen: `state:dead,retry queue:mail age>10m`. `!` turns a"
            " term round, `*` stands for anything, quotes take all literally. A word without a"
            " key is looked for in the task, the last error and the arguments."
        )
        formatter.write_text(f"Keys: {', '.join(KEYS)}, {ARGUMENT}NAME, sort.")


def _write_lines(formatter: click.HelpFormatter, title: str, lines: Sequence[str]) -> None:
    """As they stand, however wide."""
    if lines:
        with formatter.section(title):
            for line in lines:
                formatter.write(f"  {line}\n")


class Noun(click.Group):
    """A group of verbs about one thing: `redrive config check`."""

    command_class = Verb

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += common_options()

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        known = self.list_commands(ctx)
        if name not in known and not name.startswith("-"):
            near = get_close_matches(name, known, n=1)
            instead = f"; did you mean `{ctx.command_path} {near[0]}`?" if near else ""
            raise click.UsageError(f"there is no command `{name}`{instead}", ctx)
        return super().resolve_command(ctx, args)


class LazyNoun(Noun):
    """Its verbs, by section of the help, are imported when they are used."""

    def __init__(
        self,
        *args: Any,
        sections: Mapping[str, Mapping[str, str]],
        notes: Mapping[str, Sequence[str]],
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.sections = sections
        self.notes = notes
        self._homes = {name: home for homes in sections.values() for name, home in homes.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._homes)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._homes:
            return None
        command: click.Command = getattr(
            import_module(f"redrive.cli.{self._homes[cmd_name]}"), cmd_name.replace("-", "_")
        )
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        room = formatter.width - 6 - max(map(len, self._homes))
        for title, homes in self.sections.items():
            with formatter.section(title):
                commands = [(name, self.get_command(ctx, name)) for name in homes]
                formatter.write_dl(
                    [(name, each.get_short_help_str(room)) for name, each in commands if each]
                )

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, lines in self.notes.items():
            _write_lines(formatter, title, lines)
