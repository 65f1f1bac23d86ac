"""Batches of rows, as statements read them: `FROM {rows}`, and `r.` before a column.

A batch is one JSON parameter, which both databases take apart by themselves. SQLite is twice as
fast with bare values, so where rows have nothing to do with each other they go in chunks; and it
gives many rows back as one, because each row that the driver fetches lets go of the
interpreter's lock and then has to wait for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, count
from typing import Any, NamedTuple

CHUNKS = (512, 64, 8, 1)  # rows; of few sizes, because each is a statement that stays prepared
WORTH_A_LOOK = 64  # rows, for what they have in common

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


class Chunk(NamedTuple):
    """Some of the rows: what is the same in all of them is said once."""

    size: int
    varying: frozenset[int]  # the places of the columns that are not
    values: tuple[Any, ...]  # of the other columns, then row by row


def chunks(columns: Sequence[Sequence[Any]]) -> Iterator[Chunk]:
    done, all = 0, len(columns[0])
    for size in CHUNKS:
        while all - done >= size:
            yield _chunk([column[done : done + size] for column in columns], size)
            done += size


def _chunk(columns: Sequence[Sequence[Any]], size: int) -> Chunk:
    # By the first of them rows are told apart, and to look for others is not always worth it.
    varying = [
        place
        for place, column in enumerate(columns)
        if place == 0 or size < WORTH_A_LOOK or not _is_same(column)
    ]
    places = frozenset(varying)
    same = [column[0] for place, column in enumerate(columns) if place not in places]
    rows = zip(*(columns[place] for place in varying), strict=True)
    return Chunk(size, places, (*same, *chain.from_iterable(rows)))


def _is_same(column: Sequence[Any]) -> bool:
    return bool(column[0] == column[-1]) and column.count(column[0]) == len(column)


class Chunked(NamedTuple):
    """A statement of SQLite that takes a chunk of rows as values."""

    text: str
    before: tuple[str, ...]  # the parameters left of the rows
    after: tuple[str, ...]

    def parameters(self, chunk: Chunk, named: Mapping[str, Any]) -> tuple[Any, ...]:
        left = [named[name] for name in self.before]
        return (*left, *chunk.values, *(named[name] for name in self.after))


_NAMED = re.compile(r":(\w+)")


@lru_cache
def chunked(statement: str, columns: Columns, size: int, varying: frozenset[int]) -> Chunked:
    values = (f"column{place}" for place in count(1))
    names = (column.partition(" ")[0] for column in columns)
    picked = ", ".join(
        f"{next(values) if place in varying else '?'} AS {name}" for place, name in enumerate(names)
    )
    row = f"({', '.join('?' * len(varying))})"
    source = f"(SELECT {picked} FROM (VALUES {', '.join([row] * size)})) AS r"
    return _around(source, *statement.split("{rows}"))


@lru_cache
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
