"""The jobs that this worker holds, and the one that runs.

Two threads meet here, without a lock: a job is either taken by the main thread or removed by
the reader, because taking from a deque is atomic.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Any, List

Row = List[Any]  # task, id, lease, attempt, max_attempts, execution, args, run, step, batch
TASK, ID, LEASE, EXECUTION, ARGS = 0, 1, 2, 5, 6


class Hand:
    def __init__(self) -> None:
        self._rows: deque[Row] = deque()
        # A lock used as a bell: the main thread waits for it, whoever brings news releases it.
        self._bell = threading.Lock()
        self._bell.acquire()
        # Written by the main thread only. `began` before `current`, so that a reader who looks
        # at them the other way round never thinks a young job old.
        self.current: Row | None = None
        self.began = 0  # microseconds, monotonic
        # Written by the reader, and by the handler of SIGTERM.
        self.unwanted: set[tuple[int, int]] = set()  # jobs and leases to interrupt
        self.idle = False  # written by the main thread: it waits, nothing is on its way
        self.leaving = False  # start nothing more
        self.interrupting = False  # and let the current job go, too

    def take(self) -> Row | None:
        try:
            return self._rows.popleft()
        except IndexError:
            return None

    def wait(self) -> None:
        """Until there may be something to do."""
        self.idle = True
        self._bell.acquire()
        self.idle = False

    def add(self, rows: list[Row]) -> None:
        self._rows.extend(rows)
        self.ring()

    def ring(self) -> None:
        try:
            self._bell.release()
        except RuntimeError:
            pass  # it rings already

    def empty(self) -> bool:
        return not self._rows

    def give_back(self) -> list[Row]:
        """Every job that has not begun; from now on it never will here."""
        rows: list[Row] = []
        try:
            while True:
                rows.append(self._rows.pop())
        except IndexError:
            return rows

    def give_back_one(self, job: int, lease: int) -> Row | None:
        """The job, if it has not begun."""
        rows = self.give_back()
        wanted = [row for row in rows if row[ID] == job and row[LEASE] == lease]
        self.add([row for row in reversed(rows) if row not in wanted])
        return wanted[0] if wanted else None

    def leave(self, interrupting: bool = False) -> None:
        """Start nothing more; what has not begun stays and is the daemon's to give again."""
        self.leaving = True
        if interrupting:
            self.interrupting = True
        self.ring()

    def must_be_interrupted(self, row: Row) -> bool:
        return self.interrupting or (row[ID], row[LEASE]) in self.unwanted
