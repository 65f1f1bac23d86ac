"""A job goes, and with it all that is known of it alone."""

from __future__ import annotations

from collections.abc import Sequence

from redrived.store import ledger, outbox
from redrived.store.unit import Unit


def remove_jobs(unit: Unit, ids: Sequence[int]) -> None:
    """Their rows, events and notes; what they counted for is the caller's to say."""
    doomed = [(id,) for id in ids]
    these = f"IN (SELECT r.job FROM {unit.database.rows('job bigint')})"
    unit.over(doomed, f"DELETE FROM events WHERE job {these}")
    unit.over(doomed, f"DELETE FROM jobs WHERE id {these}")
    ledger.forget(unit, [f"job:{id}" for id in ids])
    outbox.forget(unit, ids)
