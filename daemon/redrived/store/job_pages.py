"""Pages of jobs: those that match, in the order somebody wants to see them in."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import msgspec
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Integer,
    Select,
    and_,
    case,
    false,
    func,
    literal,
    literal_column,
    or_,
    select,
    text,
    true,
    union_all,
)

from redrive.errors import UsageProblem
from redrive.lifecycle import WAITING
from redrive.models import Job
from redrive.protocol.codec import that_fit
from redrive.protocol.envelope import ROOM
from redrived.store.jobs import record
from redrived.store.tables import jobs

Clause = ColumnElement[bool]
Key = ColumnElement[Any] | int  # what jobs are sorted by, before their ids

NEVER = 2**62  # an instant beyond all: when that is due which waits no more


class Page(NamedTuple):
    jobs: list[Job]
    after: str | None
    as_of: int


class Part(NamedTuple):
    """Some jobs of a list that one index has, in the order of the list."""

    where: Clause
    key: Key = jobs.c.id  # a number: the same for all of them, so that their ids order them


_SORTS = {
    "id": jobs.c.id,
    "next": jobs.c.available_at,
    "priority": jobs.c.priority,
    "attempt": jobs.c.attempts,
    "age": jobs.c.created_at,
    "finished": jobs.c.finished_at,
    "task": jobs.c.task,
    "queue": jobs.c.queue,
    "state": jobs.c.state,
}


def never(sort: str) -> int:
    """What waits no more comes last, whichever of those that wait come first."""
    return -NEVER if sort.startswith("-") else NEVER


def page(
    connection: Connection,
    where: Clause | None,
    *,
    sort: str = "-id",
    limit: int = 50,
    after: str | None = None,
    offset: int = 0,
    total: int | None = None,
    parts: Sequence[Part] = (),
) -> Page:
    """A page of jobs, found by where the last one ended rather than by counting rows.

    It ends where a message is full, as it does at the limit.

    A jump has to count them. Where it is known how many there are, it counts from the end that
    is nearer, so that the last page of a million costs no more than the first. `parts` are the
    condition in parts that have no job in common, for this sort: each is looked up alone.
    """
    key = _key(sort)
    down = sort.startswith("-")
    place = None if after is None else _place(sort, after)
    first, n = offset, limit + 1
    if total is not None and after is None:
        first, n, from_end = _stretch(offset, n, total)
        down ^= from_end
    if parts:
        chosen = _merged(parts, place, down, first, n)
    else:
        chosen = _ids(where, _beyond(key, place, down)).order_by(*_ordered(key, down))
        chosen = chosen.limit(n).offset(first)
    # Whole rows are read only once it is known which: sorting drags nothing along.
    query = select(jobs, key.label("sorted_by")).where(jobs.c.id.in_(chosen))
    query = query.order_by(*_ordered(key, sort.startswith("-")))
    places: dict[int, Any] = {}  # of the rows that were read, one more than are shown or all
    rows = _read(connection, query, places) if n else iter(())
    shown = list(that_fit(rows, ROOM))[:limit]
    cursor = None
    if len(places) > len(shown):
        last = shown[-1].id
        cursor = msgspec.json.encode([places[last], last]).decode()
    seq = connection.execute(text("SELECT value FROM counters WHERE name = 'seq'")).scalar_one()
    return Page(shown, cursor, seq)


def _read(connection: Connection, query: Select[Any], places: dict[int, Any]) -> Iterator[Job]:
    """Jobs one by one, so that of large ones no more are read than a message holds."""
    with connection.execute(query) as rows:
        for row in rows.mappings():
            places[row["id"]] = row["sorted_by"]
            yield record(dict(row))


def _key(sort: str) -> ColumnElement[Any]:
    name = sort.removeprefix("-")
    column = _SORTS.get(name)
    if column is None:
        raise UsageProblem(f"jobs cannot be sorted by {name!r}", hint=f"by {', '.join(_SORTS)}")
    if name == "next":
        return case(
            (jobs.c.state.in_(sorted(WAITING)), column), else_=literal(never(sort), BigInteger)
        )
    # What has never ended comes before everything that has; NULL is beyond no cursor.
    return func.coalesce(column, 0) if column.nullable else column


def _place(sort: str, after: str) -> tuple[Any, int]:
    """What the last job of the page before was sorted by, and its id."""
    kind: Any = tuple[_SORTS[sort.removeprefix("-")].type.python_type, int]  # type: ignore[misc]
    try:
        place: tuple[Any, int] = msgspec.json.decode(after, type=kind)
    except (msgspec.DecodeError, ValueError):
        raise UsageProblem(
            "the place to go on from cannot be read", hint="use the `after` of the page before"
        ) from None
    return place


def _stretch(offset: int, n: int, total: int) -> tuple[int, int, bool]:
    """Which rows to count off, how many there are of them, and whether from the end."""
    n = max(0, min(n, total - offset))
    from_end = offset > total // 2
    return (max(0, total - offset - n) if from_end else offset), n, from_end


def _ids(*conditions: Clause | None) -> Select[int]:
    return select(jobs.c.id).where(*(each for each in conditions if each is not None))


def _merged(
    parts: Sequence[Part], place: tuple[Any, int] | None, down: bool, first: int, n: int
) -> Select[int]:
    """What comes `first` in the order and after: of each part the beginning is enough."""
    begun = (
        _ids(part.where, _beyond(part.key, place, down))
        .add_columns(_expression(part.key).label("place"))
        .order_by(*_ordered(part.key, down))
        .limit(first + n)
        .subquery()
        for part in parts
    )
    merged = union_all(*(select(each) for each in begun)).subquery()
    order = (each.desc() if down else each.asc() for each in (merged.c.place, merged.c.id))
    return select(merged.c.id).order_by(*order).limit(n).offset(first)


def _expression(key: Key) -> ColumnElement[Any]:
    return literal(key, BigInteger) if isinstance(key, int) else key


def _ordered(key: Key, down: bool) -> list[ColumnElement[Any]]:
    alone = isinstance(key, int) or key is jobs.c.id
    keys = [jobs.c.id] if alone else [_expression(key), jobs.c.id]
    return [each.desc() if down else each.asc() for each in keys]


def _beyond(key: Key, place: tuple[Any, int] | None, down: bool) -> Clause | None:
    if place is None:
        return None
    value, id = place
    beyond: Callable[[Any, Any], Any] = operator.lt if down else operator.gt
    if isinstance(key, int) and key != value:
        return true() if beyond(key, value) else false()
    if isinstance(key, int) or key is jobs.c.id:
        return cast("Clause", beyond(jobs.c.id, id))
    not_before = operator.le if down else operator.ge  # where an index can begin
    return and_(not_before(key, value), or_(beyond(key, value), beyond(jobs.c.id, id)))


def matching(connection: Connection, where: Clause | None, newest: int | None) -> list[int]:
    """The ids of all that match, up to the newest one that counts."""
    query = _ids(where, None if newest is None else jobs.c.id <= newest)
    return list(connection.execute(query.order_by(jobs.c.id)).scalars())


def count(connection: Connection, where: Clause | None, limit: int | None = None) -> int:
    """How many match, counted up to a limit: nothing on a screen waits for more."""
    # Of a row nothing is read: where an index has all that is asked of, that is half the time.
    matches = select(literal_column("1", Integer)).select_from(jobs).limit(limit)
    if where is not None:
        matches = matches.where(where)
    query = select(func.count()).select_from(matches.subquery())
    return int(connection.execute(query).scalar_one())
