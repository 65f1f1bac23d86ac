"""Reading jobs: one, or a page of those that match."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    func,
    or_,
    select,
    text,
    union_all,
)

from redrive.deciding.guidance import once_over
from redrive.errors import UsageProblem
from redrive.lifecycle import JobState
from redrive.models import Budgets, ErrorRecord, Job, Progress
from redrived.store.tables import HELD, jobs

_decode = msgspec.json.decode


class Page(NamedTuple):
    jobs: list[Job]
    after: str | None
    as_of: int


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


def get(connection: Connection, id: int) -> Job | None:
    row = connection.execute(select(jobs).where(jobs.c.id == id)).mappings().first()
    return None if row is None else record(dict(row))


def get_many(connection: Connection, ids: list[int]) -> list[Job]:
    rows = connection.execute(select(jobs).where(jobs.c.id.in_(ids)).order_by(jobs.c.id))
    return [record(dict(row)) for row in rows.mappings()]


def pinned(connection: Connection, id: int) -> str | None:
    """The pipeline and version in which the policy of its step is written."""
    return connection.execute(select(jobs.c.pinned).where(jobs.c.id == id)).scalar()


def executions(connection: Connection, id: int) -> int:
    """How often a job has been executed, over all its lives."""
    query = select(jobs.c.executions).where(jobs.c.id == id)
    return connection.execute(query).scalar() or 0


def page(
    connection: Connection,
    where: ColumnElement[bool] | None,
    *,
    sort: str = "-id",
    limit: int = 50,
    after: str | None = None,
    offset: int = 0,
    total: int | None = None,
    parts: Sequence[ColumnElement[bool]] = (),
) -> Page:
    """A page of jobs, found by where the last one ended rather than by counting rows.

    A jump has to count them. Where it is known how many there are, it counts from the end that
    is nearer, so that the last page of a million costs no more than the first. `parts` are the
    condition in parts that have no job in common: in the order of ids each is looked up alone.
    """
    name = sort.removeprefix("-")
    column = _SORTS.get(name)
    if column is None:
        raise UsageProblem(f"jobs cannot be sorted by {name!r}", hint=f"by {', '.join(_SORTS)}")
    down = sort.startswith("-")
    # What has never ended comes before everything that has; NULL is beyond no cursor.
    key = func.coalesce(column, 0) if column.nullable else column
    order = _ordered(name, key, down)
    beyond = None if after is None else _beyond(name, key, after, down)
    first, n = offset, limit + 1
    if total is not None and after is None:
        first, n, from_end = _stretch(offset, n, total)
        down ^= from_end
    if parts and name == "id":
        chosen = _merged([_ids(part, beyond) for part in parts], down, first, n)
    else:
        chosen = _ids(where, beyond).order_by(*_ordered(name, key, down)).limit(n).offset(first)
    # Whole rows are read only once it is known which: sorting drags nothing along.
    query = select(jobs, key.label("sorted_by")).where(jobs.c.id.in_(chosen)).order_by(*order)
    rows = [dict(row) for row in connection.execute(query).mappings()] if n else []
    more = len(rows) > limit
    rows = rows[:limit]
    cursor = None
    if more:
        cursor = msgspec.json.encode([rows[-1]["sorted_by"], rows[-1]["id"]]).decode()
    seq = connection.execute(text("SELECT value FROM counters WHERE name = 'seq'")).scalar_one()
    return Page([record(row) for row in rows], cursor, seq)


def _stretch(offset: int, n: int, total: int) -> tuple[int, int, bool]:
    """Which rows to count off, how many there are of them, and whether from the end."""
    n = max(0, min(n, total - offset))
    from_end = offset > total // 2
    return (max(0, total - offset - n) if from_end else offset), n, from_end


def _ids(*conditions: ColumnElement[bool] | None) -> Select[int]:
    return select(jobs.c.id).where(*(each for each in conditions if each is not None))


def _merged(parts: Iterable[Select[int]], down: bool, first: int, n: int) -> Select[int]:
    """What comes `first` in the order of ids and after: of each part the beginning is enough."""
    order = _ordered("id", jobs.c.id, down)
    begun = (part.order_by(*order).limit(first + n).subquery() for part in parts)
    merged = union_all(*(select(each.c.id) for each in begun)).subquery()
    place = merged.c.id.desc() if down else merged.c.id.asc()
    return select(merged.c.id).order_by(place).limit(n).offset(first)


def _ordered(name: str, key: ColumnElement[Any], down: bool) -> list[ColumnElement[Any]]:
    keys = [key] if name == "id" else [key, jobs.c.id]
    return [each.desc() if down else each.asc() for each in keys]


def _beyond(name: str, key: ColumnElement[Any], after: str, down: bool) -> ColumnElement[bool]:
    kind: Any = tuple[_SORTS[name].type.python_type, int]  # type: ignore[misc]
    try:
        value, id = msgspec.json.decode(after, type=kind)
    except (msgspec.DecodeError, ValueError):
        raise UsageProblem(
            "the place to go on from cannot be read", hint="use the `after` of the page before"
        ) from None
    beyond: Callable[[Any, Any], ColumnElement[bool]] = operator.lt if down else operator.gt
    if name == "id":
        return beyond(jobs.c.id, id)
    return or_(beyond(key, value), and_(key == value, beyond(jobs.c.id, id)))


def matching(
    connection: Connection, where: ColumnElement[bool] | None, newest: int | None
) -> list[int]:
    """The ids of all that match, up to the newest one that counts."""
    query = _ids(where, None if newest is None else jobs.c.id <= newest)
    return list(connection.execute(query.order_by(jobs.c.id)).scalars())


def count(
    connection: Connection, where: ColumnElement[bool] | None, limit: int | None = None
) -> int:
    """How many match, counted up to a limit: nothing on a screen waits for more."""
    inner = _ids(where).limit(limit).subquery()
    return int(connection.execute(select(func.count()).select_from(inner)).scalar_one())


def record(row: dict[str, Any]) -> Job:
    """A row as everybody speaks of it."""
    return Job(
        id=row["id"],
        task=row["task"],
        queue=row["queue"],
        operation=row["operation"],
        mode=row["mode"],
        priority=row["priority"],
        state=JobState(row["state"]),
        held=row["waits"] == HELD,
        reason=row["reason"],
        attempts=row["attempts"],
        max_attempts=row["max_attempts"],
        life=row["life"],
        lease=row["lease"],
        available_at=row["available_at"],
        created_at=row["created_at"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        last_attempt_at=row["last_attempt_at"],
        heartbeat_at=row["heartbeat_at"],
        scheduled_for=row["scheduled_for"],
        node=row["node"],
        error=_error(row),
        result=_json(row["result"], Any),
        metrics=_json(row["metrics"], dict[str, Any]),
        progress=_json(row["progress"], Progress),
        budgets=Budgets(
            attempts=row["attempts"],
            max_attempts=row["max_attempts"],
            lost=row["lost"],
            manual_retries=row["manual_retries"],
            interruptions=row["interruptions"],
            snoozes=row["snoozes"],
        ),
        run=None if row["run_id"] is None else f"r{row['run_id']}",
        step=row["step"],
        batch=row["batch"],
        unique=row["unique_key"],
        args=_decode(row["args"]),
    )


def _error(row: dict[str, Any]) -> ErrorRecord | None:
    error: ErrorRecord | None = _json(row["error"], ErrorRecord)
    if error is not None and row["state"] == JobState.CANCELLED:
        # It was written down when a retry was still to come.
        return msgspec.structs.replace(error, guidance=once_over(error.guidance))
    return error


def _json(value: str | None, kind: Any) -> Any:
    return None if value is None else _decode(value, type=kind)
