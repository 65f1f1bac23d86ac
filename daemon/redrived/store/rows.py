"""Batches of rows, as statements read them: `FROM {rows}`, and `r.` before a column.

A batch is one JSON parameter, which both databases take apart by themselves. SQLite is twice as
fast with bare values, so where rows have nothing to do with each other they go in chunks; and it
gives many rows back as one, because each row that the driver fetches lets go of the
interpreter's lock and then has to wait for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, count
from typing import Any, NamedTuple

# Rows in a statement: of few sizes, because each is one that stays prepared. What is left of
# many rows goes into the smallest that holds it, filled up with rows that are none.
MANY = 32  # are worth a look at what they have in common
CHUNKS = (512, 128, MANY)

Columns = tuple[str, ...]  # each is "name" (text) or "name type"


@lru_cache
def from_json(is_sqlite: bool, columns: Columns) -> str:
    """A subquery over the `:rows` parameter, a JSON array of arrays; `n` numbers them from 0."""
    parts = [column.partition(" ")[::2] for column in columns]
    if is_sqlite:
        picked = (f"value ->> {place} AS {name}" for place, (name, _) in enumerate(parts))
        return f"(SELECT key AS n, {', '.join(picked)} FROM json_each(:rows)) AS r"
    picked = (
        f"CAST(v ->> {place} AS {kind or 'text'}) AS {name}"
        for place, (name, kind) in enumerate(parts)
    )
    source = "jsonb_array_elements(CAST(:rows AS jsonb)) WITH ORDINALITY AS e(v, o)"
    # The condition, always true, is for the planner: it then takes the rows for few and looks
    # up what belongs to each. For the hundred it would expect it reads a small table whole,
    # and goes on doing so when the table has grown.
    few = f"o BETWEEN 1 AND {2**31}"
    return f"(SELECT o - 1 AS n, {', '.join(picked)} FROM {source} WHERE {few}) AS r"


def room_for(n: int) -> int:
    """The size of the smallest statement that holds so many."""
    return 1 << (n - 1).bit_length()


class Chunk(NamedTuple):
    """Some of many rows: what is the same in all of them is said once."""

    size: int
    varying: tuple[int, ...]  # the places of the columns that are not
    values: tuple[Any, ...]  # of the other columns, then row by row


def chunks(columns: Sequence[Sequence[Any]]) -> Iterator[Chunk]:
    """Of rows given column by column, all but the few that no chunk is filled with."""
    done, total = 0, len(columns[0])
    for size in CHUNKS:
        while total - done >= size:
            yield _chunk([column[done : done + size] for column in columns], size)
            done += size


def _chunk(columns: Sequence[Sequence[Any]], size: int) -> Chunk:
    # By the first of them rows are told apart.
    varying = [p for p, column in enumerate(columns) if p == 0 or not _is_same(column)]
    same = [column[0] for place, column in enumerate(columns) if place not in varying]
    rows = zip(*(columns[place] for place in varying), strict=True)
    return Chunk(size, tuple(varying), (*same, *chain.from_iterable(rows)))


def _is_same(column: Sequence[Any]) -> bool:
    return bool(column[0] == column[-1]) and column.count(column[0]) == len(column)


class Chunked(NamedTuple):
    """A statement of SQLite that takes a chunk of rows as values."""

    text: str
    before: tuple[str, ...]  # the parameters left of the rows
    after: tuple[str, ...]

    def around(self, values: Iterable[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """All its parameters."""
        parameters = [named[name] for name in self.before]
        parameters += values
        if self.after:
            parameters += [named[name] for name in self.after]
        return tuple(parameters)


_NAMED = re.compile(r":(\w+)")


@lru_cache(maxsize=512)
def chunked(statement: str, columns: Columns, size: int, varying: tuple[int, ...]) -> Chunked:
    """For a chunk of that many rows."""
    values = (f"column{place}" for place in count(1))
    names = (column.partition(" ")[0] for column in columns)
    picked = ", ".join(
        f"{next(values) if place in varying else '?'} AS {name}" for place, name in enumerate(names)
    )
    row = f"({', '.join('?' * len(varying))})"
    some = "" if size == 1 else " WHERE column1 IS NOT NULL"
    source = f"(SELECT {picked} FROM (VALUES {', '.join([row] * size)}){some}) AS r"
    return _around(source, *statement.split("{rows}"))


@lru_cache(maxsize=512)
def few(statement: str, columns: Columns, size: int) -> Chunked:
    """For so few rows, or fewer, that it is not worth a look what they have in common."""
    return chunked(statement, columns, size, tuple(range(len(columns))))


@lru_cache(maxsize=512)
def among(statement: str, size: int) -> Chunked:
    """The same for a statement `IN {ids}`: of these rows only their ids are needed."""
    return _around(f"({', '.join('?' * size)})", *statement.split("{ids}"))


def _around(rows: str, before: str, after: str) -> Chunked:
    return Chunked(
        text=_NAMED.sub("?", before) + rows + _NAMED.sub("?", after),
        before=tuple(_NAMED.findall(before)),
        after=tuple(_NAMED.findall(after)),
    )


def as_one(columns: Sequence[str], rest: str) -> str:
    """A question to SQLite whose answer is one text: the rows, as JSON arrays, with commas."""
    array = f"json_array({', '.join(columns)})"
    return f"SELECT group_concat(row) FROM (SELECT {array} AS row {rest})"
