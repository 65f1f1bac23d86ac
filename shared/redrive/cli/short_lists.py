"""The lists that come whole: queues, schedules, nodes, batches, groups.

What of them is printed, and in which order, is chosen here. So is the order of runs, of which
the daemon knows only the newest first.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click
from msgspec import Struct
from msgspec.structs import asdict

from redrive import filters
from redrive.cli import kinds, words
from redrive.cli.output import remark
from redrive.errors import NotFound, UsageProblem

Row = TypeVar("Row", bound=Struct)
Command = TypeVar("Command", bound=Callable[..., Any])

LIMIT = 200  # rows, unless asked for more


class Choice(Struct, frozen=True, kw_only=True):
    """What was typed behind the name of a list."""

    where: str | None = None
    sort: str | None = None
    limit: int = LIMIT
    after: str | None = None

    @property
    def needs(self) -> int | None:
        """How many rows to ask for, the first that is too much included; None: all there are."""
        return None if self.where or self.sort or self.after else self.limit + 1

    def of(self, kind: type[Row], rows: Sequence[Row], noun: str, name: str = "name") -> list[Row]:
        """Those wanted; `name` is the field that names a row, and `noun` what it names."""
        wanted = filters.parse(self.where or "", filters.vocabulary(kind, noun, name))
        now = words.now()
        chosen = [row for row in rows if filters.row_matches(wanted, row, name, now)]
        if self.sort is not None:
            chosen = _sorted(chosen, self.sort, noun, name)
        if self.after is not None:
            names = [getattr(row, name) for row in chosen]
            if self.after not in names:
                raise NotFound(
                    f"no {noun} in this list is called {self.after!r}",
                    hint="--after takes the name in the last row of the page before",
                )
            chosen = chosen[names.index(self.after) + 1 :]
        if len(chosen) > self.limit:
            last = getattr(chosen[self.limit - 1], name)
            remark(f"there are more: --after {shlex.quote(last)}")
        return chosen[: self.limit]


def sort_option(command: Command) -> Command:
    text = "Order by one of the keys of --json; `-` turns it."
    return click.option("--sort", metavar="KEY", help=text)(command)


def choice_options(*, filtered: bool = True) -> Callable[[Command], Command]:
    """`--where --sort --limit --after`: the fields of a `Choice`."""
    where = click.option(
        "--where", "-w", metavar="FILTER",
        help="Only those that match, as in `name:bulk* priority>=10`; a word: in the name.",
    )  # fmt: skip
    options = [
        *([where] if filtered else []),
        sort_option,
        click.option(
            "--limit", type=kinds.count, default=str(LIMIT), metavar="N",
            help=f"At most so many; default: {LIMIT}.",
        ),
        click.option("--after", metavar="NAME", help="Go on behind this one."),
    ]  # fmt: skip

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def _field(row: Struct, key: str, noun: str, name: str) -> str:
    known = list(asdict(row))
    if key == noun:
        return name
    if key not in known:
        raise UsageProblem(f"a {noun} has no {key!r}", hint=f"it has {', '.join(known)}")
    return key


def _sorted(rows: list[Row], sort: str, noun: str, name: str) -> list[Row]:
    key = sort.removeprefix("-")

    def order(row: Row) -> Any:
        field = _field(row, key, noun, name)
        value = getattr(row, field)
        return int(value.removeprefix("r")) if field == "id" else value

    known = [row for row in rows if order(row) is not None]
    unknown = [row for row in rows if order(row) is None]
    if any(isinstance(order(row), (list, dict)) for row in known):
        raise UsageProblem(f"{key!r} has no order", hint=f"sort by {name}, say")
    return sorted(known, key=order, reverse=sort.startswith("-")) + unknown
