"""The fence: what lost its lease can change nothing, and that it tried is recorded."""

from __future__ import annotations

from collections.abc import Sequence

from redrived.store.unit import Unit


def stale_leases(unit: Unit, leases: Sequence[tuple[int, int]]) -> set[tuple[int, int]]:
    """Those (job, lease) that are no longer current; on PostgreSQL the current ones are locked."""
    lock = "" if unit.database.is_sqlite else " FOR UPDATE OF jobs"
    source = unit.database.rows("job bigint", "lease bigint")
    rows = unit.over(
        sorted(leases),
        f"SELECT r.job, r.lease FROM {source} JOIN jobs ON jobs.id = r.job"
        f" WHERE jobs.lease = r.lease AND jobs.state = 'leased'{lock}",
    )
    current = {(job, lease) for job, lease in rows}
    return set() if len(current) == len(leases) else set(leases) - current


def note_late(
    unit: Unit, job: int, lease: int, attempt: int, run_id: int | None, outcome: str
) -> None:
    unit.emit(
        "late_result",
        job=job,
        run=run_id,
        attempt=attempt,
        data={"lease": lease, "outcome": outcome},
    )
