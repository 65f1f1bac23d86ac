"""Counted as it happens, so that whoever asks for metrics makes nobody count.

In memory, since the start of the daemon; what has to survive it is in the store.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

from redrived.engine.attempt import Attempt
from redrived.store.unit import Landed


class Histogram:
    """How many values fell below each bound."""

    BOUNDS = (0.001, 0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0)

    def __init__(self) -> None:
        self.counts = [0] * (len(self.BOUNDS) + 1)
        self.total = 0.0

    def note(self, value: float) -> None:
        self.counts[bisect_left(self.BOUNDS, value)] += 1
        self.total += value

    def note_all(self, values: Sequence[float]) -> None:
        if max(values) <= self.BOUNDS[0]:  # as of thousands that do next to nothing
            self.counts[0] += len(values)
            self.total += sum(values)
            return
        for value in values:
            self.note(value)


class Measures:
    """Used by the main loop only."""

    def __init__(self) -> None:
        self.attempts: Counter[tuple[str, str]] = Counter()  # task, what became of the job
        self.durations: dict[str, Histogram] = {}  # by task
        self.events: Counter[str] = Counter()  # by type, of this node
        self.writes = Histogram()  # from asking for a change to its being on disk

    def ended(self, task: str, became: str, n: int) -> None:
        self.attempts[task, became] += n

    def ran(self, task: str, seconds: Sequence[float]) -> None:
        self.durations.setdefault(task, Histogram()).note_all(seconds)

    def over(self, attempt: Attempt, now: float) -> None:
        if attempt.definition.pool is None:  # workers tell of theirs themselves
            self.ran(attempt.job.task, [now - attempt.since])

    def landed(self, landed: Landed) -> None:
        self.events.update(event[1] for event in landed.events)
