"""The fence: what lost its lease can change nothing, and that it tried is recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from redrived.store.unit import NeedsCare, Unit, to_json

# Spelled so that PostgreSQL looks each job up by its id: the index of what is leased seems
# short to it, but holds a trace of all that has been leased since the last vacuum.
IS_LEASED = "jobs.state || '' = 'leased'"
IS_CURRENT = f"jobs.id = r.job AND jobs.lease = r.lease AND {IS_LEASED}"


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
    current = (
        f"SELECT r.job, r.lease FROM {source} JOIN jobs ON jobs.id = r.job"
        f" WHERE jobs.lease = r.lease AND {IS_LEASED}{begun}{lock}"
    )
    rows = to_json(sorted(leases))
    # Nearly always all of them are: that much is told without a row for each.
    if _count(unit, current, rows) == len(leases):
        return set()
    return set(leases) - {(job, lease) for job, lease in unit.execute(current, rows=rows)}


def _count(unit: Unit, select: str, rows: str) -> int:
    count: int = unit.execute(f"SELECT count(*) FROM ({select}) AS found", rows=rows).scalar()
    return count


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


def presumed_in_time(unit: Unit, items: Sequence[Fenced]) -> list[bool]:
    """The same for a change that is itself fenced: nearly always all are, and it would tell."""
    return in_time(unit, items) if unit.careful else [True] * len(items)


def confirm(unit: Unit, changed: int, presumed: int) -> None:
    """Go on if as many rows were current as was presumed."""
    if changed != presumed and not unit.careful:
        raise NeedsCare


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
