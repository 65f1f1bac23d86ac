"""How many attempts of the last while have failed: kept as counts, however many there were."""

from __future__ import annotations

from collections import deque

from msgspec import Struct

PARTS = 100  # of a window; what is a part too old still counts


class _Part(Struct):
    began: float
    ends: int = 0
    failures: int = 0


class Window:
    """The ends of so many seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.ends = 0
        self.failures = 0
        self._parts: deque[_Part] = deque()

    def note(self, now: float, *, failed: bool, n: int = 1) -> None:
        while self._parts and self._parts[0].began < now - self.seconds:
            old = self._parts.popleft()
            self.ends -= old.ends
            self.failures -= old.failures
        if not self._parts or now - self._parts[-1].began > self.seconds / PARTS:
            self._parts.append(_Part(now))
        for counts in (self, self._parts[-1]):
            counts.ends += n
            counts.failures += n * failed
