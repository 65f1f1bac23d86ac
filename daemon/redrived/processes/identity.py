"""Which process exactly: a pid alone is a number that the next process may get.

Boot id, pid and the start in ticks since boot name one process for ever; wall-clock start
times would move with the clock. Nothing here signals a process that is not the one meant.
"""

from __future__ import annotations

import os
import signal
from functools import cache
from pathlib import Path

from msgspec import Struct

from redrived.processes import proc


class Identity(Struct, frozen=True):
    boot: str
    pid: int
    started: int  # ticks since boot

    @classmethod
    def of(cls, pid: int) -> Identity | None:
        """Who has this pid now; nobody when only a dead child's status is left of it."""
        facts = proc.stat(pid)
        return None if facts is None or facts.is_dead else cls.from_stat(facts)

    @classmethod
    def from_stat(cls, facts: proc.Stat) -> Identity:
        return cls(boot_id(), facts.pid, facts.started)

    def is_alive(self) -> bool:
        return self == Identity.of(self.pid)

    def signal(self, number: signal.Signals) -> bool:
        """Signal this very process; False when it is gone, whoever has its pid now."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return False
        try:
            # Asked while we hold the handle: after that the pid cannot change hands.
            if not self.is_alive():
                return False
            signal.pidfd_send_signal(handle, number)
        except ProcessLookupError:
            return False
        finally:
            os.close(handle)
        return True


@cache
def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
