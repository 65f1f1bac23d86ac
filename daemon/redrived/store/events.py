"""Reading the event log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, text

from redrive.models import Event
from redrived.store.log import EventRow
from redrived.store.unit import Landed

_COLUMNS = "seq, at, type, job, run, attempt, state, attempts, data"


class Past(NamedTuple):
    """Events of a job from the begin of an execution on."""

    events: list[Event]
    executions: int = 0  # how many there were before
    life: int = 1  # in which they begin


def head(connection: Connection) -> int:
    """The seq of the newest event."""
    value = connection.execute(text("SELECT value FROM counters WHERE name = 'seq'")).scalar()
    return int(value or 0)


def oldest(connection: Connection) -> int:
    value = connection.execute(text("SELECT min(seq) FROM events")).scalar()
    return int(value or 0)


def after(connection: Connection, seq: int, limit: int) -> list[Event]:
    return _ask(
        connection,
        f"SELECT {_COLUMNS} FROM events WHERE seq > :seq ORDER BY seq LIMIT :limit",
        seq=seq,
        limit=limit,
    )


def newest(connection: Connection, n: int) -> list[Event]:
    """The newest `n`, oldest of them first."""
    found = _ask(connection, f"SELECT {_COLUMNS} FROM events ORDER BY seq DESC LIMIT :n", n=n)
    return found[::-1]


def of_job(connection: Connection, job: int, seq: int = 0, limit: int = 1_000_000) -> list[Event]:
    return _ask(
        connection,
        f"SELECT {_COLUMNS} FROM events WHERE job = :job AND seq > :seq ORDER BY seq LIMIT :limit",
        job=job,
        seq=seq,
        limit=limit,
    )


def of_run(connection: Connection, run: int, seq: int = 0, limit: int = 1_000_000) -> list[Event]:
    return _ask(
        connection,
        f"SELECT {_COLUMNS} FROM events WHERE run = :run AND seq > :seq ORDER BY seq LIMIT :limit",
        run=run,
        seq=seq,
        limit=limit,
    )


def last_executions(connection: Connection, job: int, n: int) -> Past:
    """The last `n` executions of a job; of those before, which may be a million, the count."""
    query = text(
        "SELECT seq FROM events WHERE job = :job AND type = 'action_started'"
        " ORDER BY seq DESC LIMIT 1 OFFSET :n"
    )
    first = connection.execute(query, {"job": job, "n": n - 1}).scalar()
    if first is None:
        return Past(of_job(connection, job))
    counts = text(
        "SELECT type, count(*) FROM events WHERE job = :job AND seq < :first"
        " AND type IN ('action_started', 'job_requeued') GROUP BY type"
    )
    before = {kind: int(m) for kind, m in connection.execute(counts, {"job": job, "first": first})}
    return Past(
        of_job(connection, job, first - 1),
        before.get("action_started", 0),
        1 + before.get("job_requeued", 0),
    )


def attempt_of(connection: Connection, job: int, execution: int) -> int | None:
    """Which attempt of its life the nth execution of a job was; None before it has begun."""
    statement = (
        "SELECT attempt FROM events WHERE job = :job AND type = 'action_started'"
        " ORDER BY seq LIMIT 1 OFFSET :before"
    )
    found = connection.execute(text(statement), {"job": job, "before": execution - 1})
    return found.scalar()


def said_at_first(connection: Connection, job: int) -> dict[str, Any]:
    """Who wanted a job and what was said with it; nothing when what came before it did."""
    query = text("SELECT data FROM events WHERE job = :job ORDER BY seq LIMIT 1")
    data = connection.execute(query, {"job": job}).scalar()
    return msgspec.json.decode(data, type=dict[str, Any]) if data else {}


def errors_since(
    connection: Connection, at: int, limit: int = 100_000
) -> list[tuple[str | None, Event]]:
    """The failures recorded since an instant, the newest last, each with its task."""
    found = connection.execute(
        text(
            f"SELECT (SELECT task FROM jobs WHERE jobs.id = events.job), {_COLUMNS} FROM events"
            " WHERE type = 'action_error' AND at >= :at ORDER BY seq DESC LIMIT :limit"
        ),
        {"at": at, "limit": limit},
    )
    return [(task, _event((seq, *rest))) for task, seq, *rest in found][::-1]


def announced(landed: Landed) -> Iterator[Event]:
    """The events of a group as everybody may hear them."""
    return (_event((landed.first_seq + n, *row)) for n, row in enumerate(landed.events))


def _ask(connection: Connection, statement: str, **parameters: Any) -> list[Event]:
    return _events(connection.execute(text(statement), parameters))


def _events(rows: Iterable[Any]) -> list[Event]:
    return [_event(row) for row in rows]


def _event(row: tuple[int, *EventRow]) -> Event:
    seq, at, kind, job, run, attempt, state, attempts, data = row
    return Event(
        seq=seq,
        at=at,
        type=kind,
        job=job,
        run=None if run is None else f"r{run}",
        attempt=attempt,
        state=state,
        attempts=attempts,
        data=msgspec.json.decode(data) if data else {},
    )
