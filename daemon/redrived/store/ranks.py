"""The place of waiting jobs in their queue, worked out anew when its operations change."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from sqlalchemy import Connection, text

from redrived.store.unit import Unit


class Ranking(Struct, frozen=True):
    jobs: Sequence[int]
    operations: Sequence[str]  # in their order


def waiting(connection: Connection, queue: str, after: int, limit: int) -> list[int]:
    """Jobs of a queue that wait, by id."""
    rows = connection.execute(
        text(
            "SELECT id FROM jobs WHERE queue = :queue AND waits IS NOT NULL AND id > :after"
            " ORDER BY id LIMIT :n"
        ),
        {"queue": queue, "after": after, "n": limit},
    )
    return list(rows.scalars())


def rank(unit: Unit, wishes: Sequence[Ranking]) -> list[int]:
    """Those that still wait stand where their operation stands; others come last."""
    return [_rank(unit, wish) for wish in wishes]


def _rank(unit: Unit, wish: Ranking) -> int:
    names = {f"o{place}": name for place, name in enumerate(wish.operations)}
    cases = " ".join(f"WHEN :{key} THEN {place}" for place, key in enumerate(names))
    place = f"CASE operation {cases} ELSE {len(names)} END" if names else "0"
    return unit.over(
        [(id,) for id in wish.jobs],
        f"UPDATE jobs SET rank = {place} WHERE waits IS NOT NULL"
        f" AND id IN (SELECT r.job FROM {unit.database.rows('job bigint')})",
        **names,
    ).rowcount
