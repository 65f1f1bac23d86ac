"""The outbox: what applications asked for inside transactions of their own, and its fate.

A row that waits becomes a job in the commit that also says so in the row. The row is taken
first, so that of several nodes which found it one makes the job. It then goes with its job;
one that was refused stays until a person discards it, or a node can do it after all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import Struct
from sqlalchemy import Connection, text

from redrive.protocol.rows import OutboxRow
from redrived.store.enqueue import Order, Placed, enqueue
from redrived.store.unit import Unit

PAGE = 1_000  # rows looked at together, fewer when they are large
PAGE_CHARACTERS = 4_000_000


class Wish(NamedTuple):
    """A row that is to become a job."""

    id: int
    ticket: str
    task: str
    wish: str
    by: str
    at: int


class Granted(Struct, frozen=True):
    """A row and the job it asks for."""

    row: Wish
    order: Order


class Declined(Struct, frozen=True):
    """A row, and why no job can be made of it."""

    row: Wish
    why: str


class Discard(Struct, frozen=True):
    ticket: str
    by: str


def grant(unit: Unit, items: Sequence[Granted]) -> list[Placed | None]:
    """Make jobs of rows; None where another node was faster."""
    taken = _take(unit, [item.row.id for item in items])
    places = iter(enqueue(unit, [item.order for item in items if item.row.id in taken]))
    answers = [next(places)[0] if item.row.id in taken else None for item in items]
    unit.over(
        [
            (item.row.id, "created" if place.created else "known", place.id)
            for item, place in zip(items, answers, strict=True)
            if place is not None
        ],
        "UPDATE outbox SET outcome = r.outcome, job = r.job, settled_at = :now,"
        " why = NULL, wish = ''"
        f" FROM {unit.database.rows('id bigint', 'outcome', 'job bigint')}"
        " WHERE outbox.id = r.id",
        now=unit.now,
    )
    return answers


def decline(unit: Unit, items: Sequence[Declined]) -> list[None]:
    """Write down why no job was made; it is an event the first time."""
    whys = [(item.row.id, item.why) for item in items]
    source = unit.database.rows("id bigint", "why")
    unit.over(
        whys,
        f"UPDATE outbox SET why = r.why FROM {source}"
        " WHERE outbox.id = r.id AND outbox.outcome = 'refused' AND outbox.why <> r.why",
    )
    first = unit.over(
        whys,
        f"UPDATE outbox SET outcome = 'refused', settled_at = :now, why = r.why FROM {source}"
        " WHERE outbox.id = r.id AND outbox.outcome IS NULL RETURNING outbox.id",
        now=unit.now,
    )
    new = {id for (id,) in first}
    for item in items:
        if item.row.id in new:
            unit.emit("order_refused", data={**_named(item.row), "why": item.why})
    return [None] * len(items)


def discard(unit: Unit, items: Sequence[Discard]) -> list[str | None]:
    """Remove a row that is no job; the answer is what had become of it, None: there is none."""
    return [_discard(unit, item) for item in items]


def _discard(unit: Unit, item: Discard) -> str | None:
    row = unit.execute(
        "SELECT id, ticket, task, wish, by, at, outcome FROM outbox WHERE ticket = :ticket"
        + ("" if unit.database.is_sqlite else " FOR UPDATE"),
        ticket=item.ticket,
    ).first()
    if row is None:
        return None
    *columns, outcome = row
    if outcome in (None, "refused"):
        wish = Wish(*columns)
        unit.execute("DELETE FROM outbox WHERE id = :id", id=wish.id)
        asked = _named(wish)
        unit.emit("order_discarded", data={**asked, "by": item.by, "asked_by": asked["by"]})
    return outcome or "waiting"


def forget(unit: Unit, jobs: Sequence[int]) -> None:
    """What is said of jobs that are no more."""
    unit.over(
        [(job,) for job in jobs],
        f"DELETE FROM outbox WHERE job IN (SELECT r.job FROM {unit.database.rows('job bigint')})",
    )


def _take(unit: Unit, ids: Sequence[int]) -> set[int]:
    """Those of the rows that are not jobs yet, and that nobody else is at."""
    found = unit.over(
        [(id,) for id in ids],
        f"SELECT id FROM outbox WHERE id IN (SELECT r.id FROM {unit.database.rows('id bigint')})"
        " AND (outcome IS NULL OR outcome = 'refused')" + unit.database.skip_locked,
    )
    return {id for (id,) in found}


def _named(row: Wish) -> dict[str, Any]:
    return {"ticket": row.ticket, "task": row.task, "by": asker(row.by)}


def asker(role: str) -> str:
    """A role of the database among those who ask."""
    return f"postgresql:{role}"


# ---- reading, of PostgreSQL only -----------------------------------------------------------

_WISH = "id, ticket, task, wish, by, at"
_FATE = "id, ticket, task, by, at, outcome, job, why"


def _unsettled(columns: str) -> str:
    """Rows that wait or were refused: two questions, because each has an index of its own."""
    rest = "AND id > :after ORDER BY id LIMIT :most"
    refused = "outcome = 'refused' AND settled_at > :refused_after"
    return (
        f"((SELECT {columns} FROM outbox WHERE outcome IS NULL {rest}) UNION ALL"
        f" (SELECT {columns} FROM outbox WHERE {refused} {rest})) AS unsettled"
    )


_PAGE = text(
    f"SELECT {_WISH} FROM (SELECT {_WISH},"
    " sum(length(wish)) OVER (ORDER BY id) - length(wish) AS before"
    f" FROM {_unsettled(_WISH)}) AS measured"
    " WHERE before < :characters ORDER BY id LIMIT :most"
)
_LIST = text(f"SELECT {_FATE} FROM {_unsettled(_FATE)} ORDER BY id LIMIT :most")


def page(connection: Connection, after: int, refused_after: int) -> list[Wish]:
    """Rows that wait, and those that were refused after an instant; in the order of their ids."""
    found = connection.execute(
        _PAGE,
        {
            "after": after,
            "refused_after": refused_after,
            "most": PAGE,
            "characters": PAGE_CHARACTERS,
        },
    )
    return [Wish(*row) for row in found]


def unsettled(connection: Connection, limit: int) -> list[OutboxRow]:
    """What waits or was refused, the oldest first."""
    found = connection.execute(_LIST, {"after": 0, "refused_after": 0, "most": limit})
    return [_fate(*row) for row in found]


def fate(connection: Connection, ticket: str) -> OutboxRow | None:
    """What became of one."""
    found = connection.execute(
        text(f"SELECT {_FATE} FROM outbox WHERE ticket = :ticket"), {"ticket": ticket}
    ).first()
    return None if found is None else _fate(*found)


def refused(connection: Connection) -> int:
    """How many no job could be made of."""
    count = text("SELECT count(*) FROM outbox WHERE outcome = 'refused'")
    return int(connection.execute(count).scalar_one())


def _fate(
    _id: int,
    ticket: str,
    task: str,
    role: str,
    at: int,
    outcome: str | None,
    job: int | None,
    why: str | None,
) -> OutboxRow:
    return OutboxRow(
        ticket=ticket,
        task=task,
        by=asker(role),
        at=at,
        outcome=outcome or "waiting",
        job=job,
        why=why,
    )
