"""What must happen once: claims of `job.once`, and what `job.remaining` has finished."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

from redrived.store.unit import Unit

PAGE = 2_000


class Claim(NamedTuple):
    scope: str  # run:7 or job:12
    key: str


class Marked(NamedTuple):
    scope: str
    keys: Sequence[str]


def claim(unit: Unit, claims: Sequence[Claim]) -> list[bool]:
    """True the first time a key is claimed within its scope, for ever."""
    answers: list[bool] = []
    for scope, key in claims:
        added = unit.execute(
            "INSERT INTO ledger (scope, key, at) VALUES (:scope, :key, :now)"
            " ON CONFLICT (scope, key) DO NOTHING",
            scope=scope,
            key=key,
            now=unit.now,
        )
        answers.append(added.rowcount == 1)
    return answers


def mark(unit: Unit, marks: Sequence[Marked]) -> list[None]:
    """Note finished items; noting one twice is harmless."""
    unit.over(
        [(scope, key) for scope, keys in marks for key in keys],
        "INSERT INTO ledger (scope, key, at) SELECT r.scope, r.key, :now"
        f" FROM {unit.database.rows('scope', 'key')} WHERE true"
        " ON CONFLICT (scope, key) DO NOTHING",
        now=unit.now,
    )
    return [None] * len(marks)


def forget(unit: Unit, scopes: Sequence[str]) -> None:
    """What was noted for jobs or runs that are no more."""
    unit.over(
        [(scope,) for scope in scopes],
        f"DELETE FROM ledger WHERE scope IN (SELECT r.scope FROM {unit.database.rows('scope')})",
    )


def marked(connection: Connection, scope: str, after: str) -> list[str]:
    """A page of the marked keys behind one of them."""
    rows = connection.execute(
        text("SELECT key FROM ledger WHERE scope = :scope AND key > :after ORDER BY key LIMIT :n"),
        {"scope": scope, "after": after, "n": PAGE},
    )
    return [key for (key,) in rows]
