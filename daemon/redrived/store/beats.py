"""Signs of life and progress, fenced like every other write about an attempt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from redrived.store.fence import IS_LEASED
from redrived.store.turns import apart
from redrived.store.unit import Unit


class Beat(NamedTuple):
    job: int
    lease: int
    at: int
    progress: str | None = None  # JSON
    metrics: str | None = None  # JSON


@apart()
def beat(unit: Unit, items: Sequence[Beat]) -> list[None]:
    """Note beats, of several from one attempt the newest; those of a stale lease change nothing."""
    newest: dict[tuple[int, int], Beat] = {}
    for item in items:
        before = newest.get((item.job, item.lease), item)
        newest[item.job, item.lease] = item._replace(
            progress=item.progress or before.progress, metrics=item.metrics or before.metrics
        )
    source = unit.database.rows("job bigint", "lease bigint", "at bigint", "progress", "metrics")
    unit.over(
        sorted(newest.values()),
        "UPDATE jobs SET heartbeat_at = r.at, progress = coalesce(r.progress, jobs.progress),"
        " metrics = coalesce(r.metrics, jobs.metrics)"
        f" FROM {source} WHERE jobs.id = r.job AND jobs.lease = r.lease AND {IS_LEASED}",
    )
    return [None] * len(items)
