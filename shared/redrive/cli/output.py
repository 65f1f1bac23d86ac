"""What is printed: JSON for programs, tables and labelled lines for people.

A table fits the terminal: a column that may shrink is cut, and where that is not enough the
last columns are left out, as a mark in the first line says. Where nobody watches (a pipe, a
file) no column is left out, only what is longer than a program wants in one line is cut, and
nothing is coloured.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Any
from unicodedata import combining, east_asian_width

import click
from msgspec import Struct

from redrive.cli.cleaning import clean, clean_lines
from redrive.cli.words import colour_of
from redrive.models import plain
from redrive.protocol.commands import Done

_GAP = "  "
_NARROWEST = 8
_CUT = "…"
# Many a program that reads line by line ends one at these, too.
_LINE_ENDS = "\x85\u2028\u2029"
_LONGEST = 200  # characters of a cell that may be cut, where there is no terminal


class Column(Struct, frozen=True):
    title: str
    right: bool = False
    shrinks: bool = False
    coloured: bool = False  # by what the cell says


def print_json(value: Struct | dict[str, Any]) -> None:
    shown = plain(value) if isinstance(value, Struct) else value
    # Escaped, it is the same JSON: for a terminal, which must not see what others wrote as it is,
    # and where no UTF-8 is written.
    escaped = sys.stdout.isatty() or sys.stdout.encoding.lower() != "utf-8"
    text = json.dumps(shown, ensure_ascii=escaped, default=str)
    for each in _LINE_ENDS:
        text = text.replace(each, f"\\u{ord(each):04x}")
    sys.stdout.write(text + "\n")


def print_each(values: Iterable[Struct | dict[str, Any]]) -> None:
    for value in values:
        print_json(value)


def print_done(as_json: bool, done: Done) -> None:
    if as_json:
        print_json({"text": done.text, **done.data})
    else:
        say(done.text)


def say(text: str) -> None:
    click.echo(clean_lines(text))


def remark(text: str) -> None:
    """For the person, beside what is printed for the program."""
    click.echo(clean_lines(text), err=True)


def print_table(columns: Sequence[Column], rows: Iterable[Sequence[object]], *, empty: str) -> None:
    cells = [[clean("-" if each is None else str(each)) for each in row] for row in rows]
    if not cells:
        say(empty)
        return
    widths = [
        max(len(column.title), *(_width(row[at]) for row in cells))
        for at, column in enumerate(columns)
    ]
    shown = _fit(columns, widths)
    more = f" {_CUT}" if shown < len(columns) else ""
    columns, widths = columns[:shown], widths[:shown]
    titles = _line(columns, widths, [column.title for column in columns])
    click.secho(titles + more, bold=True)
    for row in cells:
        click.echo(_line(columns, widths, row[:shown], coloured=True))


def print_fields(fields: Iterable[tuple[str, object]]) -> None:
    """Labelled lines; what is empty is left out."""
    shown = [(label, str(value)) for label, value in fields if value not in (None, "", {}, [])]
    widest = max((len(label) for label, _ in shown), default=0)
    for label, value in shown:
        first, *rest = clean_lines(value).splitlines() or [""]
        click.echo(f"{click.style(label.ljust(widest), dim=True)}  {first}")
        for line in rest:
            click.echo(" " * (widest + 2) + line)


def print_heading(text: str) -> None:
    click.echo()
    click.secho(clean(text), bold=True)


def _fit(columns: Sequence[Column], widths: list[int]) -> int:
    """How many of the columns there is room for, once those that may have shrunk."""
    if not sys.stdout.isatty():
        for at, column in enumerate(columns):
            widths[at] = min(widths[at], _LONGEST) if column.shrinks else widths[at]
        return len(columns)
    room = shutil.get_terminal_size().columns
    for at, column in enumerate(columns):
        excess = _needed(widths) - room
        if excess > 0 and column.shrinks:
            widths[at] = max(min(_NARROWEST, widths[at]), widths[at] - excess)
    if _needed(widths) <= room:
        return len(columns)
    room -= len(_CUT) + 1
    return next((n for n in range(len(columns), 1, -1) if _needed(widths[:n]) <= room), 1)


def _needed(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _line(
    columns: Sequence[Column], widths: Sequence[int], row: Sequence[str], *, coloured: bool = False
) -> str:
    shown: list[str] = []
    for column, width, cell in zip(columns, widths, row, strict=True):
        text = _padded(_cut(cell, width), width, column.right)
        colour = colour_of(cell) if coloured and column.coloured else None
        shown.append(click.style(text, fg=colour) if colour else text)
    return _GAP.join(shown).rstrip()


def _width(text: str) -> int:
    return sum(
        0 if combining(each) else 2 if east_asian_width(each) in "WF" else 1 for each in text
    )


def _cut(text: str, width: int) -> str:
    if _width(text) <= width:
        return text
    text = text[: 4 * width]  # what combines with others takes no room, but is never that much
    while text and _width(text) > width - 1:
        text = text[:-1]
    return text + _CUT


def _padded(text: str, width: int, right: bool) -> str:
    padding = " " * (width - _width(text))
    return padding + text if right else text + padding
