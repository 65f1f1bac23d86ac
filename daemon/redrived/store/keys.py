"""Keys that limit how many jobs run at once: what waits behind one comes forward."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from redrived.store.unit import Unit


def free_keys(unit: Unit, keys: Sequence[str]) -> None:
    """Let the next job of each key come forward: one for each that went."""
    if keys:
        unit.lock("limits")  # or another node, having counted this one, parks it unseen
    for key, n in Counter(keys).items():
        unit.made_ready()
        unit.execute(
            "UPDATE jobs SET waits = 'ready' WHERE id IN (SELECT id FROM jobs"
            " WHERE waits = 'key' AND limit_key = :key"
            " ORDER BY rank, priority DESC, available_at, id LIMIT :n)",
            key=key,
            n=n,
        )
