"""Who leads: one row with a term, held for as long as it is renewed in the store's own time."""

from __future__ import annotations

from collections.abc import Sequence

from redrived.store.unit import Unit

ROLE = "leader"


def lead(unit: Unit, lengths: Sequence[int]) -> list[int | None]:
    """Take the lead, or keep it, for so many microseconds; the answer is the term, if we have it.

    A term ends with its holder: who leads next gets a higher one, so that what was decided
    under an old term can be told from what counts. Nobody shares a SQLite store: whoever
    opened it leads.
    """
    is_free = "true" if unit.database.is_sqlite else "leaders.until < :now"
    for length in lengths:
        unit.execute(
            "INSERT INTO leaders (role, node, term, until) VALUES (:role, :node, 1, :until)"
            " ON CONFLICT (role) DO UPDATE SET node = excluded.node, until = excluded.until,"
            " term = leaders.term + CASE WHEN leaders.node = excluded.node THEN 0 ELSE 1 END"
            f" WHERE leaders.node = excluded.node OR {is_free}",
            role=ROLE,
            node=unit.node,
            until=unit.now + length,
            now=unit.now,
        )
    term = unit.execute(
        "SELECT term FROM leaders WHERE role = :role AND node = :node AND until >= :now",
        role=ROLE,
        node=unit.node,
        now=unit.now,
    ).scalar()
    return [term] * len(lengths)


def resign(unit: Unit, items: Sequence[None]) -> list[None]:
    """Let the next one lead at once."""
    unit.execute(
        "UPDATE leaders SET until = 0 WHERE role = :role AND node = :node",
        role=ROLE,
        node=unit.node,
    )
    return [None] * len(items)


def is_term(unit: Unit, term: int) -> bool:
    """Whether what was decided under a term still counts."""
    return (
        unit.execute(
            "SELECT 1 FROM leaders WHERE role = :role AND term = :term AND node = :node",
            role=ROLE,
            term=term,
            node=unit.node,
        ).first()
        is not None
    )
