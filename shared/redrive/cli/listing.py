"""What the lists have in common: a filter that is checked here, pages, a limit."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

import click
from msgspec import Struct

from redrive.cli import kinds
from redrive.cli.output import print_each, remark
from redrive.cli.settings import Settings

ROWS = 50  # for a person; a program gets all
_PAGE = 500

Row = TypeVar("Row", bound=Struct)
Page = tuple[list[Row], str | None]  # and with what to ask for the next one
Command = TypeVar("Command", bound=Callable[..., Any])


def check_filter(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """Point at the column before the daemon is asked."""
    if value:
        from redrive.filters import FilterProblem, parse

        try:
            parse(value)
        except FilterProblem as problem:
            remark(problem.picture)
            raise
    return value


def where_option(command: Command) -> Command:
    return click.option(
        "--where", "-w", metavar="FILTER", callback=check_filter,
        help="Only those that match, as in `state:dead queue:bulk error:timeout age>2h text`.",
    )(command)  # fmt: skip


def page_options(command: Command) -> Command:
    for option in (
        click.option("--after", metavar="CURSOR", help="Go on where a list ended."),
        click.option(
            "--limit", type=kinds.count, metavar="N",
            help=f"At most so many; default: {ROWS}, or all with --json.",
        ),
    ):  # fmt: skip
        command = option(command)
    return command


class Pages(Generic[Row]):
    """Rows, asked for page by page; `more` is where a list goes on that its limit ended."""

    def __init__(
        self, ask: Callable[[int, str | None], Page[Row]], limit: int | None, after: str | None
    ) -> None:
        self._ask = ask
        self._limit = limit
        self.more = after

    def __iter__(self) -> Iterator[Row]:
        left = self._limit
        while left is None or left > 0:
            found, self.more = self._ask(_PAGE if left is None else min(left, _PAGE), self.more)
            yield from found
            if left is not None:
                left -= len(found)
            if self.more is None:
                return


def print_pages(
    settings: Settings, pages: Pages[Row], table: Callable[[Iterable[Row]], None]
) -> None:
    if settings.as_json:
        print_each(pages)
    else:
        table(pages)
    if pages.more is not None:
        remark(f"there are more: --after {shlex.quote(pages.more)}")


def limit_for(settings: Settings, limit: int | None) -> int | None:
    return ROWS if limit is None and not settings.as_json else limit
