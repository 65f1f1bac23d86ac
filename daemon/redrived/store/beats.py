"""Signs of life and progress, fenced like every other write about an attempt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from redrived.store.unit import Unit


class Beat(NamedTuple):
    job: int
    lease: int
    at: int
    progress: str | None = None  # JSON
    metrics: str | None = None  # JSON


def beat(unit: Unit, items: Sequence[Beat]) -> list[None]:
    """Note beats; those of a stale lease change nothing."""
    source = unit.database.rows("job bigint", "lease bigint", "at bigint", "progress", "metrics")
    unit.over(
        items,
        "UPDATE jobs SET heartbeat_at = r.at, progress = coalesce(r.progress, jobs.progress),"
        " metrics = coalesce(r.metrics, jobs.metrics)"
        f" FROM {source} WHERE jobs.id = r.job AND jobs.lease = r.lease AND jobs.state = 'leased'",
    )
    return [None] * len(items)
