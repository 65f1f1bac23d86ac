"""What a daemon that died left leased."""

from __future__ import annotations

from typing import NamedTuple

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
