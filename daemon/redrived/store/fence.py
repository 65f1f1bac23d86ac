"""The fence: what lost its lease can change nothing, and that it tried is recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from redrived.store.unit import Unit


class Fenced(Protocol):
    """A write about an attempt."""

    @property
    def job(self) -> int: ...

    @property
    def lease(self) -> int: ...


class Attempted(Fenced, Protocol):
    """The end of one."""

    @property
    def attempt(self) -> int: ...

    @property
    def run_id(self) -> int | None: ...


def stale_leases(
    unit: Unit, leases: Sequence[tuple[int, int]], *, unbegun: bool = False
) -> set[tuple[int, int]]:
    """Those (job, lease) that are no longer current; on PostgreSQL the current ones are locked.

    With `unbegun`, an attempt that has begun is stale too.
    """
    lock = "" if unit.database.is_sqlite else " FOR UPDATE OF jobs"
    begun = " AND jobs.started_at IS NULL" if unbegun else ""
    source = unit.database.rows("job bigint", "lease bigint")
    rows = unit.over(
        sorted(leases),
        f"SELECT r.job, r.lease FROM {source} JOIN jobs ON jobs.id = r.job"
        f" WHERE jobs.lease = r.lease AND jobs.state = 'leased'{begun}{lock}",
    )
    current = {(job, lease) for job, lease in rows}
    return set() if len(current) == len(leases) else set(leases) - current


def in_time(unit: Unit, items: Sequence[Fenced], *, unbegun: bool = False) -> list[bool]:
    """For each item, whether it may still do what an attempt does once; the first one may."""
    leases = [(item.job, item.lease) for item in items]
    gone = stale_leases(unit, leases, unbegun=unbegun)
    if not gone and len(set(leases)) == len(leases):
        return [True] * len(leases)
    answers: list[bool] = []
    for lease in leases:
        answers.append(lease not in gone)
        gone.add(lease)
    return answers


def note_late(unit: Unit, late: Sequence[tuple[Attempted, str]]) -> None:
    """Record attempts whose outcome came too late; without the job, where that is discarded."""
    if not late:
        return
    found = unit.over(
        [(item.job,) for item, _ in late],
        f"SELECT jobs.id FROM {unit.database.rows('job bigint')} JOIN jobs ON jobs.id = r.job",
    )
    there = {id for (id,) in found}
    for item, outcome in late:
        data = {"lease": item.lease, "outcome": outcome}
        is_there = item.job in there
        unit.emit(
            "late_result",
            job=item.job if is_there else None,
            run=item.run_id,
            attempt=item.attempt,
            data=data if is_there else {"id": item.job, **data},
        )
