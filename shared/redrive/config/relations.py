"""Two claims about keys that belong together: a name refers to something, one of several is given.

Neither is made about what has already been found wrong, so that one mistake is told once.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct

from redrive.config.lines import Key
from redrive.config.problems import Problems, instead
from redrive.config.values import quoted


class Names:
    """What can be referred to by name in one table of the config."""

    def __init__(self, noun: str, table: Key, names: Collection[str], *built_in: str) -> None:
        self._noun = noun
        self._table = table
        self._names = {*names, *built_in}

    def refer(self, problems: Problems, key: Key, name: str | None) -> None:
        """The name at `key` must be one of ours, or one that was misread."""
        if name is None or name in self._names or problems.inside((*self._table, name)):
            return
        text = f"unknown {self._noun} {quoted(name)}, {instead(name, sorted(self._names))}"
        problems.doubt(key, text)


def exactly_one(problems: Problems, key: Key, section: Struct, *groups: tuple[str, ...]) -> None:
    """Of each group of keys, one and only one must be given."""
    if problems.inside(key):
        return
    for names in groups:
        given = [name for name in names if getattr(section, name) is not None]
        if len(given) != 1:
            got = " and ".join(given) or "none"
            problems.add(key, f"got {got}, expected exactly one of {', '.join(names)}")
