"""How much a queue has finished lately, told from how its counts grow."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from redrive.clock import SECOND

BUCKETS, BUCKET_SECONDS = 60, 5  # five minutes
MINUTE_BUCKETS = 60 // BUCKET_SECONDS


class Ring:
    """Amounts per bucket of time; None where nothing is known."""

    def __init__(self) -> None:
        self._amounts: deque[int | None] = deque([None] * BUCKETS, maxlen=BUCKETS)
        self._newest: int | None = None

    def add(self, at: int, amount: int) -> None:
        self._turn_to(at)
        self._amounts[-1] = (self._amounts[-1] or 0) + amount

    def amounts(self) -> list[int | None]:
        """Oldest first."""
        return list(self._amounts)

    def _turn_to(self, at: int) -> None:
        bucket = at // (BUCKET_SECONDS * SECOND)
        passed = bucket - self._newest if self._newest is not None else 1
        # Between two readings nothing is known of how it was spread: the gap stays empty.
        self._amounts.extend([None] * min(BUCKETS, passed))
        self._newest = max(bucket, self._newest or bucket)


class Throughput:
    """Jobs of one queue that ended well, and jobs that died."""

    def __init__(self) -> None:
        self.done = Ring()
        self.died = Ring()
        self._states: Mapping[str, int] | None = None

    def read(self, at: int, states: Mapping[str, int]) -> None:
        """Take in the counts of a moment. What retention removed is not counted backwards."""
        before = self._states
        if before is not None:
            self.done.add(at, max(0, states.get("done", 0) - before.get("done", 0)))
            self.died.add(at, max(0, states.get("dead", 0) - before.get("dead", 0)))
        self._states = states

    @property
    def per_minute(self) -> float | None:
        """Jobs that ended in the last minute, as far as it was watched."""
        known = [
            (done or 0) + (died or 0)
            for done, died in zip(
                self.done.amounts()[-MINUTE_BUCKETS:],
                self.died.amounts()[-MINUTE_BUCKETS:],
                strict=True,
            )
            if done is not None
        ]
        return sum(known) * MINUTE_BUCKETS / len(known) if known else None

    @property
    def died_share(self) -> float | None:
        """Of the jobs that ended in the last five minutes, how many died."""
        done = sum(amount or 0 for amount in self.done.amounts())
        died = sum(amount or 0 for amount in self.died.amounts())
        return died / (done + died) if done + died else None
