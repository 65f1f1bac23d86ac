"""Batches of rows, as statements read them: `FROM {rows}`, and `r.` before a column.

A batch is one JSON parameter, which both databases take apart by themselves. SQLite is twice as
fast with bare values, so where rows have nothing to do with each other they go in chunks; and it
gives many rows back as one, because each row that the driver fetches lets go of the
interpreter's lock and then has to wait for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

CHUNKS = (512, 64, 8, 1)  # rows; of few sizes, because each is a statement that stays prepared

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


class Chunked(NamedTuple):
    """A statement of SQLite that takes a chunk of rows as values."""

    text: str
    before: tuple[str, ...]  # the parameters left of the rows
    after: tuple[str, ...]

    def parameters(
        self, rows: Sequence[Sequence[Any]], named: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        values = [named[name] for name in self.before]
        for row in rows:
            values.extend(row)
        values.extend(named[name] for name in self.after)
        return tuple(values)


_NAMED = re.compile(r":(\w+)")


@lru_cache
def chunked(statement: str, columns: Columns, size: int) -> Chunked:
    before, after = statement.split("{rows}")
    names = (column.partition(" ")[0] for column in columns)
    picked = ", ".join(f"column{place} AS {name}" for place, name in enumerate(names, 1))
    row = f"({', '.join('?' * len(columns))})"
    source = f"(SELECT {picked} FROM (VALUES {', '.join([row] * size)})) AS r"
    return Chunked(
        text=_NAMED.sub("?", before) + source + _NAMED.sub("?", after),
        before=tuple(_NAMED.findall(before)),
        after=tuple(_NAMED.findall(after)),
    )


def as_one(columns: Sequence[str], rest: str) -> str:
    """A question to SQLite whose answer is one text: the rows, as JSON arrays, with commas."""
    array = f"json_array({', '.join(columns)})"
    return f"SELECT group_concat(row) FROM (SELECT {array} AS row {rest})"
