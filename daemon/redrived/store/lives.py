"""Another life for jobs that have ended: the one statement that gives it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from redrived.store.unit import Unit


class Life(NamedTuple):
    """What is None stays as it was, the due time excepted: None is now."""

    job: int
    rank: int
    args: str | None = None
    limit_key: str | None = None
    available_at: int | None = None
    scheduled_for: int | None = None


def give_life(unit: Unit, lives: Sequence[Life]) -> list[str]:
    """Answers what each of them waits for."""
    source = unit.database.rows(
        "job bigint",
        "rank int",
        "args",
        "limit_key",
        "available_at bigint",
        "scheduled_for bigint",
        "waits",
    )
    waits = [
        unit.waits(unit.now if life.available_at is None else life.available_at) for life in lives
    ]
    unit.over(
        [(*life, wait) for life, wait in zip(lives, waits, strict=True)],
        "UPDATE jobs SET state = 'queued', waits = r.waits, rank = r.rank, reason = NULL, attempts = 0,"
        " lost = 0, unknowns = 0, life = life + 1, life_started_at = :now,"
        " available_at = coalesce(r.available_at, :now), args = coalesce(r.args, jobs.args),"
        " limit_key = coalesce(r.limit_key, jobs.limit_key),"
        " scheduled_for = coalesce(r.scheduled_for, jobs.scheduled_for),"
        " finished_at = NULL, manual_retries = manual_retries + 1, manual_at = :now"
        f" FROM {source} WHERE jobs.id = r.job",
        now=unit.now,
    )
    return waits
