"""Attempts begin: at the lease when a worker stood ready, else when the worker says so."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import compress
from typing import NamedTuple

from redrived.store.fence import in_time
from redrived.store.log import EventRow
from redrived.store.turns import apart
from redrived.store.unit import Unit, to_json


class Begun(NamedTuple):
    """A job from a hand of several that a worker has begun."""

    job: int
    lease: int
    at: int
    attempt: int
    run_id: int | None = None


@apart()
def begin(unit: Unit, items: Sequence[Begun]) -> list[None]:
    current = list(compress(items, in_time(unit, items, unbegun=True)))
    unit.over(
        [(item.job, item.at) for item in current],
        "UPDATE jobs SET started_at = r.at, heartbeat_at = r.at, last_attempt_at = r.at"
        f" FROM {unit.database.rows('job bigint', 'at bigint')} WHERE jobs.id = r.job",
    )
    unit.emit_all([started_event(unit.node, i.at, i.job, i.run_id, i.attempt) for i in current])
    return [None] * len(items)


def started_event(node: str, at: int, job: int, run_id: int | None, attempt: int) -> EventRow:
    """The log line of a begin; a retry says that it is one."""
    data = _started_data(node, attempt > 1)
    return (at, "action_started", job, run_id, attempt, "leased", attempt, data)


@lru_cache(maxsize=8)
def _started_data(node: str, is_retry: bool) -> str:
    return to_json({"node": node, "is_retry": True} if is_retry else {"node": node})
