"""What falls due becomes ready, in chunks that never hold up the work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from redrived.store.answers import Rows
from redrived.store.tables import DUE
from redrived.store.turns import apart
from redrived.store.unit import Unit


class Promoted(Struct, frozen=True):
    n: int
    next_due: int | None  # the earliest that still sleeps; may be due already: then again


@apart()
def promote(unit: Unit, limits: Sequence[int]) -> list[Promoted]:
    """Move up to `limit` due jobs to ready; several asking at once get one answer."""
    limit = max(limits)
    # A retry is counted alike asleep and awake: which of them woke, nobody need be told.
    retries = _wake(unit, limit, "AND state = 'retry'").rowcount
    others = _wake(unit, limit - retries, "RETURNING queue, task, state").all()
    for (queue, task, state), moved in Counter(map(tuple, others)).items():
        unit.waiting(queue, task, state, DUE, -moved)
    n = retries + len(others)
    if n:
        unit.made_ready()
    next_due = unit.execute(
        "SELECT available_at FROM jobs WHERE waits = 'due' ORDER BY available_at, id LIMIT 1"
    ).scalar()
    return [Promoted(n, next_due)] * len(limits)


def _wake(unit: Unit, limit: int, rest: str) -> Rows:
    return unit.execute(
        "UPDATE jobs SET waits = 'ready' WHERE id IN (SELECT id FROM jobs"
        " WHERE waits = 'due' AND available_at <= :now"
        f" ORDER BY available_at, id LIMIT :limit{unit.database.skip_locked}) {rest}",
        now=unit.now,
        limit=limit,
    )


class KeyLimit(NamedTuple):
    """How many of each of its keys a task may have running; None: it has keys no more."""

    task: str
    most: int | None


def bring_forward(unit: Unit, batches: Sequence[Sequence[KeyLimit]]) -> list[int]:
    """Let jobs that wait behind their keys be looked at again, by limits that may be new.

    Of each key as many come forward as may run; a lease parks those that are too many.
    """
    limits = dict(limit for batch in batches for limit in batch)
    forward = unit.over(
        sorted(limits.items()),
        "UPDATE jobs SET waits = 'ready' WHERE id IN (SELECT id FROM ("
        "SELECT jobs.id AS id, r.most AS most, row_number() OVER (PARTITION BY jobs.limit_key"
        " ORDER BY jobs.rank, jobs.priority DESC, jobs.available_at, jobs.id) AS place"
        f" FROM {unit.database.rows('task', 'most int')} JOIN jobs ON jobs.task = r.task"
        " WHERE jobs.waits = 'key') AS parked WHERE most IS NULL OR place <= most)",
    ).rowcount
    if forward:
        unit.made_ready()
    return [forward] * len(batches)
