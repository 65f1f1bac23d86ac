"""What rows say of a waiting job's chances: who is leased, who started lately, who goes first."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection, text


class Lane(NamedTuple):
    """As far as limits are concerned."""

    waits: str | None
    limit_key: str | None
    queue_running: int
    task_running: int
    key_running: int
    queue_starts: int
    task_starts: int
    ahead: int
    ending: str | None  # what was asked or noticed of it while it runs
    ending_by: str | None
    cleared_by: int | None  # the job that clears its data before it is run again


MOST_AHEAD = 10_000  # counted no further


def lane(
    connection: Connection, id: int, since_queue: int | None, since_task: int | None
) -> Lane | None:
    row = connection.execute(
        text(
            "SELECT waits, limit_key, queue, task, rank, priority, ending, ending_by"
            " FROM jobs WHERE id = :id"
        ),
        {"id": id},
    ).first()
    if row is None:
        return None
    waits, limit_key, queue, task, rank, priority, ending, ending_by = row
    queue_running = task_running = key_running = 0
    leased = connection.execute(
        text(
            "SELECT queue, task, limit_key, count(*) FROM jobs WHERE state = 'leased'"
            " GROUP BY queue, task, limit_key"
        )
    )
    for other_queue, other_task, other_key, n in leased:
        queue_running += n if other_queue == queue else 0
        task_running += n if other_task == task else 0
        key_running += n if limit_key is not None and other_key == limit_key else 0
    ahead = connection.execute(
        text(
            "SELECT count(*) FROM (SELECT 1 FROM jobs WHERE waits = 'ready' AND queue = :queue"
            " AND (rank < :rank OR (rank = :rank AND (priority > :priority"
            " OR (priority = :priority AND id < :id)))) LIMIT :most) AS first"
        ),
        {"queue": queue, "rank": rank, "priority": priority, "id": id, "most": MOST_AHEAD},
    ).scalar_one()
    return Lane(
        waits,
        limit_key,
        queue_running,
        task_running,
        key_running,
        _starts(connection, f"queue:{queue}", since_queue),
        _starts(connection, f"task:{task}", since_task),
        ahead,
        ending,
        ending_by,
        _cleared_by(connection, id),
    )


def _cleared_by(connection: Connection, id: int) -> int | None:
    return connection.execute(
        text(
            "SELECT steps.clearing FROM jobs JOIN steps ON steps.run_id = jobs.run_id"
            " AND steps.job = jobs.id WHERE jobs.id = :id AND steps.state = 'clearing'"
        ),
        {"id": id},
    ).scalar()


def _starts(connection: Connection, name: str, since: int | None) -> int:
    if since is None:
        return 0
    return int(
        connection.execute(
            text("SELECT count(*) FROM starts WHERE lane = :lane AND at > :since"),
            {"lane": name, "since": since},
        ).scalar_one()
    )
