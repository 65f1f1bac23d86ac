"""What is noticed about an attempt while it still runs: that it stalled, or ran out of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from redrive.lifecycle import JobState
from redrived.store.fence import stale_leases
from redrived.store.unit import Unit


class Notice(Struct, frozen=True, kw_only=True):
    job: int
    lease: int
    attempt: int
    kind: str  # the event
    at: int  # when it was noticed, which is before it can be written down
    ending: str | None = None  # remembered with the job, should the daemon not see its end
    run_id: int | None = None
    data: dict[str, Any] = {}


def notice(unit: Unit, items: Sequence[Notice]) -> list[bool]:
    """Log it, and remember what is being done about it; False where the lease is stale."""
    stale = stale_leases(unit, [(item.job, item.lease) for item in items])
    current = [item for item in items if (item.job, item.lease) not in stale]
    unit.over(
        [(item.job, item.ending) for item in current if item.ending],
        "UPDATE jobs SET ending = coalesce(jobs.ending, r.ending)"
        f" FROM {unit.database.rows('job bigint', 'ending')} WHERE jobs.id = r.job",
    )
    for item in current:
        unit.emit(
            item.kind,
            at=item.at,
            job=item.job,
            run=item.run_id,
            attempt=item.attempt,
            state=JobState.LEASED,
            attempts=item.attempt,
            data=item.data,
        )
    return [(item.job, item.lease) not in stale for item in items]
