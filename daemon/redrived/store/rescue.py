"""What a daemon that died left leased."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from sqlalchemy import Connection, text

from redrived.store.picking import InHand


class LeftBehind(NamedTuple):
    job: InHand
    started_at: int | None  # None: in hand, never begun
    ending: str | None  # what was being done about it
    by: str | None  # who had asked for that


def left_behind(connection: Connection, node: str) -> list[LeftBehind]:
    """Every job this node holds by its row; asked before it leases anything."""
    rows = connection.execute(
        text(
            "SELECT id, rank, priority, available_at, limit_key, lease, attempts, max_attempts,"
            " executions, args, run_id, step, batch, pinned, leased_from, lost, unknowns, life,"
            " life_started_at, interruptions, queue, task, started_at, ending, ending_by"
            " FROM jobs WHERE state = 'leased' AND node = :node ORDER BY id"
        ),
        {"node": node},
    )
    return [LeftBehind(InHand._make(row[:-3]), *row[-3:]) for row in rows]


def told_unkillable(connection: Connection, node: str) -> dict[int, int]:
    """By their pids, the jobs of whose present attempt was said that SIGKILL does not end it."""
    rows = connection.execute(
        text(
            "SELECT events.job, events.data FROM jobs JOIN events ON events.job = jobs.id"
            " WHERE jobs.state = 'leased' AND jobs.node = :node AND jobs.started_at IS NOT NULL"
            " AND events.type = 'action_unkillable' AND events.seq >"
            " (SELECT max(seq) FROM events AS begins"
            " WHERE begins.job = jobs.id AND begins.type = 'action_started')"
            " ORDER BY events.seq"
        ),
        {"node": node},
    )
    return {
        pid: job for job, data in rows for pid in msgspec.json.decode(data).get("unkillable", ())
    }
