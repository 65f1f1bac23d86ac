"""What waits: the oldest that is ready, and what falls due soon."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import Connection, text

from redrive.clock import SECOND
from redrive.protocol.rows import DueRow

MINUTE = 60 * SECOND
MOST = 20_000  # rows looked at; beyond them the forecast says "at least"


class ToDo(NamedTuple):
    """What any node may do: lease what is ready, make ready what is due, open gates, and so on."""

    is_ready: bool
    due_at: int | None
    gate_at: int | None
    is_ordered: bool  # something waits in the outbox
    refused_at: int | None  # when something in it was refused last


def to_do(connection: Connection) -> ToDo:
    return ToDo(*connection.execute(_TO_DO).one())


_TO_DO = text(
    "SELECT EXISTS (SELECT 1 FROM jobs WHERE waits = 'ready'),"
    " (SELECT available_at FROM jobs WHERE waits = 'due' ORDER BY available_at, id LIMIT 1),"
    " (SELECT min(opens_at) FROM gates WHERE opens_at IS NOT NULL AND waiting > 0),"
    " EXISTS (SELECT 1 FROM outbox WHERE outcome IS NULL),"
    " (SELECT max(settled_at) FROM outbox WHERE outcome = 'refused')"
)


def ready_lanes(connection: Connection) -> list[tuple[str, str]]:
    """Every (queue, task) that has something ready: a hop per lane, however long the lanes."""
    return [(queue, task) for queue, task in connection.execute(_LANES)]


# Hops are spelled out: SQLite searches for (queue, task) > (?, ?) through all of a queue.
# A queue that somebody has written as a BLOB could be put into no order with the others.
LANES = (
    "WITH RECURSIVE queues (queue) AS ("
    " SELECT min(queue) FROM jobs WHERE waits = 'ready'"
    " UNION ALL SELECT (SELECT min(jobs.queue) FROM jobs"
    "  WHERE waits = 'ready' AND jobs.queue > queues.queue)"
    " FROM queues WHERE queue IS NOT NULL"
    "), lanes (queue, task) AS ("
    " SELECT queue, (SELECT min(task) FROM jobs WHERE waits = 'ready' AND jobs.queue = queues.queue)"
    " FROM queues WHERE queue IS NOT NULL"
    " UNION ALL SELECT queue, (SELECT min(jobs.task) FROM jobs"
    "  WHERE waits = 'ready' AND jobs.queue = lanes.queue AND jobs.task > lanes.task)"
    " FROM lanes WHERE task IS NOT NULL"
    ") SELECT CAST(queue AS TEXT), task FROM lanes WHERE task IS NOT NULL"
)
_LANES = text(LANES)


def oldest_ready(connection: Connection, without: Collection[str] = ()) -> dict[str, int]:
    """By queue: since when the job that is due longest has been ready; one look per lane.

    What belongs to one of the tasks `without` is not looked at.
    """
    found: dict[str, int] = {}
    for queue, task in ready_lanes(connection):
        if task in without:
            continue
        head = connection.execute(_HEAD, {"queue": queue, "task": task}).scalar()
        if head is not None:  # else it is a row with a name that is no text
            found[queue] = min(found.get(queue, head), head)
    return found


_HEAD = text(
    "SELECT available_at FROM jobs WHERE waits = 'ready' AND queue = :queue AND task = :task"
    " ORDER BY rank, priority DESC, available_at, id LIMIT 1"
)


def soon(connection: Connection, now: int, until: int) -> list[DueRow]:
    """Retries and scheduled jobs that fall due by then, by minute and queue."""
    rows = connection.execute(
        text(
            "SELECT (available_at / :minute) * :minute AS at, state, queue, count(*) FROM"
            " (SELECT available_at, state, queue FROM jobs WHERE waits = 'due'"
            "  AND available_at <= :until ORDER BY available_at, id LIMIT :most) AS sleeping"
            " GROUP BY at, state, queue ORDER BY at, state, queue"
        ),
        {"minute": MINUTE, "until": until, "most": MOST},
    )
    return [
        DueRow(at=max(at, now), kind="retry" if state == "retry" else "scheduled", n=n, name=queue)
        for at, state, queue, n in rows
    ]
