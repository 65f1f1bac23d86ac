"""On which line of the file does a key stand?

tomllib gives values without positions, so this walks the same text once more and notes
where every table, key and list item begins. It reads no values and judges only what tomllib
does not tell well: keys that are written twice, and nesting without end, which would exhaust
tomllib and us. Text that is not TOML ends the walk early, without an error.
"""

from __future__ import annotations

import re
import tomllib
from typing import NamedTuple

Key = tuple[str | int, ...]  # ("tasks", "parse", "retry", "delays", 0)

_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_PART = re.compile(r""" [A-Za-z0-9_-]+ | "(?:\\.|[^"\\\n])*" | '[^'\n]*' """, re.VERBOSE)
_STRING = re.compile(
    r""" \"{3}(?:\\.|[^\\])*?\"{3,5} | '{3}.*?'{3,5} | "(?:\\.|[^"\\\n])*" | '[^'\n]*' """,
    re.VERBOSE | re.DOTALL,
)
_BARE = re.compile(r"[^\s,\[\]{}#][^,\[\]{}#\n]*")  # numbers, booleans, dates
_DEEPEST = 64


class Twice(NamedTuple):
    """A key that was written again."""

    key: Key
    first: int
    again: int


class Lines:
    """Where the keys of one TOML text stand."""

    def __init__(self, text: str) -> None:
        walk = _Walk(text)
        try:
            walk.document()
        except _Lost:
            pass  # tomllib says what is wrong with the text
        self.twice = walk.twice
        self.too_deep = walk.too_deep
        self._written = walk.written
        self._parents = walk.parents

    def __getitem__(self, key: Key) -> int:
        """The line of `key`, or of the closest table around it that was written."""
        while key:
            line = self._written.get(key) or self._parents.get(key)
            if line:
                return line
            key = key[:-1]
        return 1


class _Lost(Exception):
    """The text is not TOML here."""


class _Walk:
    def __init__(self, text: str) -> None:
        self.written: dict[Key, int] = {}
        self.parents: dict[Key, int] = {}  # tables that exist only through their children
        self.twice: list[Twice] = []
        self.too_deep: int | None = None  # a line
        self._text = text
        self._at = 0
        self._line = 1
        self._counted = 0  # `_line` is the line of this offset
        self._tables: dict[Key, int] = {}  # how many [[tables]] each array has so far

    def document(self) -> None:
        table: Key = ()
        while self._peek():
            if self._takes("[["):
                table = self._header("]]")
            elif self._takes("["):
                table = self._header("]")
            else:
                self._pair(table)

    def _header(self, close: str) -> Key:
        line = self._line_here()
        *parents, last = self._parts()
        key: Key = ()
        for part in parents:
            key += (part,)
            if key in self._tables:
                key += (self._tables[key] - 1,)
        key += (last,)
        if close == "]]":
            count = self._tables[key] = self._tables.get(key, 0) + 1
            key += (count - 1,)
        elif key in self._tables:
            raise _Lost
        self._note(key, line)
        self._expect(close)
        return key

    def _pair(self, table: Key) -> None:
        line = self._line_here()
        key = (*table, *self._parts())
        self._note(key, line)
        self._expect("=")
        self._value(key)

    def _parts(self) -> list[str]:
        parts = [self._part()]
        while self._takes("."):
            parts.append(self._part())
            self._check_depth(len(parts))
        return parts

    def _part(self) -> str:
        self._peek()
        part = self._match(_PART)
        return _unquoted(part) if part[0] in "\"'" else part

    def _value(self, key: Key) -> None:
        if self._takes("["):
            self._list(key)
        elif self._takes("{"):
            self._inline_table(key)
        else:
            self._match(_STRING if self._peek() in ("'", '"') else _BARE)

    def _list(self, key: Key) -> None:
        index = 0
        while not self._takes("]"):
            self._peek()
            self._note((*key, index), self._line_here())
            self._value((*key, index))
            index += 1
            if not self._takes(","):
                self._expect("]")
                return

    def _inline_table(self, key: Key) -> None:
        while not self._takes("}"):
            self._peek()
            self._pair(key)
            if not self._takes(","):
                self._expect("}")
                return

    def _check_depth(self, depth: int) -> None:
        if depth > _DEEPEST:
            self.too_deep = self._line_here()
            raise _Lost

    def _note(self, key: Key, line: int) -> None:
        self._check_depth(len(key))
        if key in self.written:
            self.twice.append(Twice(key, self.written[key], line))
            return
        self.written[key] = line
        for length in range(1, len(key)):
            self.parents.setdefault(key[:length], line)

    def _peek(self) -> str:
        """The next character that is neither blank nor comment; empty at the end."""
        blank = _BLANK.match(self._text, self._at)
        self._at = blank.end() if blank else self._at
        return self._text[self._at : self._at + 1]

    def _takes(self, token: str) -> bool:
        self._peek()
        found = self._text.startswith(token, self._at)
        self._at += len(token) * found
        return found

    def _expect(self, token: str) -> None:
        if not self._takes(token):
            raise _Lost

    def _match(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        if not found:
            raise _Lost
        self._at = found.end()
        return found[0]

    def _line_here(self) -> int:
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._line


def _unquoted(part: str) -> str:
    try:
        return str(tomllib.loads(f"part = {part}")["part"])
    except ValueError:
        raise _Lost from None
