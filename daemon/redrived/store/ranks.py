"""The place of jobs in their queue, worked out anew when its operations change.

What waits is given its place, and what runs, for it may wait again. The order that a queue was
last put into is kept, so that a start finds out whether the config has another one by now.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, text

from redrived.store.unit import Unit, to_json

_ORDER = "order of "  # before the name of a queue, in `facts`


class Ranking(Struct, frozen=True):
    queue: str
    operations: Sequence[str]  # in their order
    jobs: Sequence[int]
    is_last: bool  # the queue is in order then


def orders(connection: Connection) -> dict[str, list[str] | None]:
    """The operations of queues in the order that they were last put into; None: in part."""
    found = connection.execute(
        text("SELECT name, value FROM facts WHERE name LIKE :like"), {"like": f"{_ORDER}%"}
    )
    return {name.removeprefix(_ORDER): msgspec.json.decode(value) for name, value in found}


def unfinished(connection: Connection, queue: str, after: int, limit: int) -> list[int]:
    """Jobs of a queue that wait or run, by id."""
    rows = connection.execute(
        text(
            "SELECT id FROM jobs WHERE queue = :queue AND id > :after"
            " AND (waits IS NOT NULL OR state = 'leased') ORDER BY id LIMIT :n"
        ),
        {"queue": queue, "after": after, "n": limit},
    )
    return list(rows.scalars())


def rank(unit: Unit, wishes: Sequence[Ranking]) -> list[int]:
    """Those that have not ended stand where their operation stands; others come last."""
    return [_rank(unit, wish) for wish in wishes]


def _rank(unit: Unit, wish: Ranking) -> int:
    unit.execute(
        "INSERT INTO facts (name, value) VALUES (:name, :value)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        name=f"{_ORDER}{wish.queue}",
        value=to_json(wish.operations if wish.is_last else None),
    )
    names = {f"o{place}": name for place, name in enumerate(wish.operations)}
    cases = " ".join(f"WHEN :{key} THEN {place}" for place, key in enumerate(names))
    place = f"CASE operation {cases} ELSE {len(names)} END" if names else "0"
    return unit.over(
        [(id,) for id in wish.jobs],
        f"UPDATE jobs SET rank = {place} WHERE (waits IS NOT NULL OR state = 'leased')"
        f" AND id IN (SELECT r.job FROM {unit.database.rows('job bigint')})",
        **names,
    ).rowcount
