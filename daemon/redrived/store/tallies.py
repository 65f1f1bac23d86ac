"""The counts that every commit keeps up: read, never counted."""

from __future__ import annotations

from sqlalchemy import Connection, text

from redrive.lifecycle import JobState

Counts = dict[str, dict[str, dict[str, int]]]  # queue → task → state → jobs


def read(connection: Connection) -> Counts:
    counts: Counts = {}
    for queue, task, state, n in connection.execute(
        text("SELECT queue, task, state, sum(n) FROM tallies GROUP BY queue, task, state")
    ):
        if n:
            counts.setdefault(queue, {}).setdefault(task, {})[state] = int(n)
    return counts


def by_state(counts: Counts) -> dict[str, int]:
    """Jobs in each state; every state is named, also the empty ones."""
    totals = {str(state): 0 for state in JobState}
    for tasks in counts.values():
        for states in tasks.values():
            for state, n in states.items():
                totals[state] += n
    return totals


def by_queue(counts: Counts) -> dict[str, dict[str, int]]:
    totals: dict[str, dict[str, int]] = {}
    for queue, tasks in counts.items():
        total = totals.setdefault(queue, {})
        for states in tasks.values():
            for state, n in states.items():
                total[state] = total.get(state, 0) + n
    return totals
