"""How long the jobs of each task take, as far as that decides how many fit a hand."""

from __future__ import annotations

from redrived.processes.pool_worker import HAND, MOST_IN_HAND

# Seconds of work that may be leased behind a command. More than a worker's hand: a lease should
# be worth its commit, which on a busy disk takes as long as many `true`. Nothing of it has begun
# should the daemon die, and behind a command that turns out long it goes back soon.
BEHIND_A_COMMAND = 0.06

_WEIGHT = 0.5  # of the newest batch; the first job of a task pays for its imports


class Pace:
    """A running mean per task; a task not seen yet is taken for a long one."""

    def __init__(self) -> None:
        self._means: dict[str, float] = {}

    def note(self, task: str, jobs: int, seconds: float) -> None:
        took = seconds / jobs
        known = self._means.get(task)
        # One long job among short ones must count at once: hands would be too large.
        if known is None or took > 4 * known:
            self._means[task] = took
        else:
            self._means[task] = known + _WEIGHT * (took - known)

    def expected(self, task: str) -> float | None:
        """Seconds; None when nothing is known."""
        return self._means.get(task)

    def slot(self, task: str) -> int:
        """How many commands a slot may hold: one that runs, and tiny ones behind it."""
        mean = self._means.get(task)
        return 1 if mean is None else 1 + int(BEHIND_A_COMMAND / max(mean, 1e-3))

    def hand(self, task: str) -> int:
        """How many of its jobs make a full hand."""
        mean = self._means.get(task)
        if mean is None:
            return 1
        return max(1, min(MOST_IN_HAND, int(HAND / max(mean, 1e-6))))
