"""What a bench found: a table on the terminal, and its own section of docs/performance.md.

A section stands between two marks that name its bench. A bench writes that section anew and
leaves the rest of the page alone; one that has no section yet gets it at the end. A quick run
is printed and not written down.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import signal
import sqlite3
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import psutil

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
HEAD = "| what | measured | goal | never worse than | |\n|---|---:|---:|---:|---|\n"


class Bound(NamedTuple):
    """What a number is held to."""

    limit: float
    is_upper: bool

    def holds(self, number: float) -> bool:
        return number <= self.limit if self.is_upper else number >= self.limit

    def __str__(self) -> str:
        return f"{'≤' if self.is_upper else '≥'} {shown(self.limit)}"


def at_least(limit: float) -> Bound:
    return Bound(limit, is_upper=False)


def at_most(limit: float) -> Bound:
    return Bound(limit, is_upper=True)


class Row(NamedTuple):
    what: str
    number: float
    unit: str
    goal: Bound | None
    floor: Bound | None

    @property
    def verdict(self) -> str:
        if self.goal is None and self.floor is None:
            return ""
        if self.goal is not None and self.goal.holds(self.number):
            return "reached"
        if self.floor is not None and self.floor.holds(self.number):
            return "floor held"
        return "**missed**"

    def cells(self) -> tuple[str, str, str, str, str]:
        measured = f"{shown(self.number)} {self.unit}".strip()
        return (self.what, measured, said(self.goal), said(self.floor), self.verdict)


class Report:
    """The rows of one bench, shown as they come and written down at the end."""

    def __init__(self, name: str, title: str, about: str) -> None:
        self.name = name
        self.title = title
        self.about = about  # what is measured, how durably, in how many rounds
        self.rows: list[Row] = []
        self.notes: list[str] = []

    def add(
        self,
        what: str,
        number: float,
        unit: str = "",
        *,
        goal: Bound | None = None,
        floor: Bound | None = None,
    ) -> None:
        row = Row(what, number, unit, goal, floor)
        self.rows.append(row)
        what, measured, wanted, least, verdict = row.cells()
        print(f"{what:<58} {measured:>18} {wanted:>10} {least:>10}  {verdict}", flush=True)

    def note(self, text: str) -> None:
        """A sentence that belongs to the numbers: a peer that was not there."""
        self.notes.append(text)
        print(text, flush=True)

    def write(self, options: argparse.Namespace) -> None:
        if options.quick:
            print("a quick run: nothing is written down")
            return
        page = PAGE.read_text()
        begin, end = (
            f"<!-- {self.name}: written by bench/{self.name}.py -->",
            f"<!-- /{self.name} -->",
        )
        section = f"{begin}\n{self.section()}{end}"
        old = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        if not old.search(page):
            page = f"{page.rstrip()}\n\n{begin}\n{end}\n"
        PAGE.write_text(old.sub(lambda _: section, page))

    def section(self) -> str:
        rows = "".join(f"| {' | '.join(row.cells())} |\n" for row in self.rows)
        notes = "".join(f"\n{note}\n" for note in self.notes)
        return f"## {self.title}\n\n{self.about}\nOn {machine()}.\n\n{HEAD}{rows}{notes}"


def options(about: str | None, *, rounds: int | None = None) -> argparse.ArgumentParser:
    """What every bench can be told; each adds its own sizes."""
    # Whatever stops a bench, it ends the daemons and servers it started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--quick", action="store_true", help="a smoke run; nothing is written down")
    if rounds is not None:
        parser.add_argument("--rounds", type=int, default=rounds)
    return parser


def machine() -> str:
    memory = round(psutil.virtual_memory().total / 1024**3)
    python = ".".join(str(part) for part in sys.version_info[:3])
    cores = len(os.sched_getaffinity(0))
    return (
        f"{cores} cores of {platform.machine()}, {memory} GiB, Python {python},"
        f" SQLite {sqlite3.sqlite_version}; a write is synced in {synced():.2g} ms"
    )


def synced() -> float:
    """Milliseconds of a small write that is on disk, median: what one commit costs at least."""
    took: list[float] = []
    with tempfile.TemporaryFile() as file:
        for _ in range(200):
            began = time.perf_counter()
            os.pwrite(file.fileno(), bytes(4096), len(took) * 4096)
            os.fdatasync(file.fileno())
            took.append(1000 * (time.perf_counter() - began))
    return statistics.median(took)


def shown(number: float) -> str:
    """As exact as a number that was measured on a machine with other things to do."""
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def said(bound: Bound | None) -> str:
    return "" if bound is None else str(bound)
