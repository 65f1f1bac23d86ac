"""How much each peer has sent within a second that is of no use, for nothing else holds it back.

A socket must never stop reading (`Door`), so who sends without end would fill the memory.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Hashable

SECOND = 1.0


class Floods:
    """Counts messages by sender, and begins anew each second."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._sent: Counter[Hashable] = Counter()
        self._ends = 0.0

    def excess(self, sender: Hashable) -> int:
        """By how many a sender has sent too much, this one included."""
        now = time.monotonic()
        if now >= self._ends:
            self._sent.clear()
            self._ends = now + SECOND
        self._sent[sender] += 1
        return max(0, self._sent[sender] - self._most)
