"""What is wrong with a config file, place by place.

Problems are collected, not raised, so that one reading names them all. Nothing here knows
what a config holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import Protocol

from msgspec import Struct

from redrive.config.lines import Key
from redrive.config.values import quoted
from redrive.errors import ConfigProblem

_MOST = 100
_FEW = 6
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


class Problem(Struct, frozen=True):
    """One mistake and its place; a problem of the file itself has neither line nor key."""

    path: str
    line: int | None
    key: str
    text: str

    def __str__(self) -> str:
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{place}: {self.key}: {self.text}" if self.key else f"{place}: {self.text}"


class ConfigRejected(ConfigProblem):
    """The config cannot be used; `problems` says why, in the order of the file."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


class Enough(Exception):
    """So much is wrong that looking further helps nobody."""


class Places(Protocol):
    """On which line of a text each key stands."""

    def __getitem__(self, key: Key, /) -> int: ...


class Problems:
    """Collects what is wrong with one file."""

    def __init__(self, path: str, lines: Places) -> None:
        self._path = path
        self._lines = lines
        self._found: list[tuple[Key, Problem]] = []

    def add(self, key: Key, text: str) -> None:
        if len(self._found) == _MOST:
            raise Enough
        self._found.append((key, Problem(self._path, self._lines[key], dotted(key), text)))

    def doubt(self, key: Key, text: str) -> None:
        """Add what may only follow from a mistake already found at `key` or inside it."""
        if not self.inside(key):
            self.add(key, text)

    def inside(self, key: Key) -> bool:
        """Whether anything at `key`, or inside it, is wrong."""
        return any(found[: len(key)] == key for found, _ in self._found)

    def in_file_order(self) -> list[Problem]:
        return sorted((problem for _, problem in self._found), key=lambda it: it.line or 0)


def dotted(key: Key) -> str:
    """A key as people write it: `tasks.parse.delays[0]`."""
    texts = (f"[{each}]" if isinstance(each, int) else f".{part(each)}" for each in key)
    return "".join(texts).removeprefix(".")


def part(name: str) -> str:
    """One part of a key, in quotes where TOML wants them."""
    return name if _BARE_KEY.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def instead(name: str, known: Collection[str]) -> str:
    """What to write in place of `name`: the nearest known name, the others where they are few."""
    if not known:
        return "but none is defined"
    near = _nearest(name, known)
    if near is None:
        return f"expected {one_of(known)}"
    question = f"did you mean {quoted(near)}?"
    return f"expected {one_of(known)}, {question}" if 1 < len(known) <= _FEW else question


def _nearest(name: str, known: Collection[str]) -> str | None:
    # Comparing takes time in the lengths and the number of names; a mistyped one is short.
    if len(name) > 100 or len(known) > 1000:
        return None
    lowered = {candidate.lower(): candidate for candidate in known}
    near = get_close_matches(name.lower(), lowered, n=1)
    return lowered[near[0]] if near else None


def one_of(names: Iterable[str]) -> str:
    """`one of "a", "b"`, cut short when there are many."""
    texts = [quoted(name) for name in names]
    if len(texts) > 12:
        texts[11:] = [f"... ({len(texts) - 11} more)"]
    return texts[0] if len(texts) == 1 else "one of " + ", ".join(texts)
