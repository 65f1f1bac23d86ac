"""What falls due becomes ready, in chunks that never hold up the work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from redrived.store.tables import DUE
from redrived.store.turns import apart
from redrived.store.unit import Unit


class Promoted(Struct, frozen=True):
    n: int
    next_due: int | None  # the earliest that still sleeps; may be due already: then again


@apart()
def promote(unit: Unit, limits: Sequence[int]) -> list[Promoted]:
    """Move up to `limit` due jobs to ready; several asking at once get one answer."""
    promoted = unit.execute(
        "UPDATE jobs SET waits = 'ready' WHERE id IN (SELECT id FROM jobs"
        " WHERE waits = 'due' AND available_at <= :now"
        f" ORDER BY available_at, id LIMIT :limit{unit.database.skip_locked})"
        " RETURNING queue, task, state",
        now=unit.now,
        limit=max(limits),
    ).all()
    for (queue, task, state), n in Counter(map(tuple, promoted)).items():
        unit.waiting(queue, task, state, DUE, -n)
        unit.made_ready()
    next_due = unit.execute(
        "SELECT available_at FROM jobs WHERE waits = 'due' ORDER BY available_at, id LIMIT 1"
    ).scalar()
    return [Promoted(len(promoted), next_due)] * len(limits)


def bring_forward(unit: Unit, items: Sequence[None]) -> list[int]:
    """Look at all jobs that wait behind a key again: the limits, or this daemon, are new."""
    n = unit.execute("UPDATE jobs SET waits = 'ready' WHERE waits = 'key'").rowcount
    if n:
        unit.made_ready()
    return [n] * len(items)
