"""What attempts and the node use: processor, memory, processes.

One look a second at the processes that are ours, by walking down from those we know; what
else runs on the machine costs nothing. Orphans of a tree are counted where it has a cgroup.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterable

import psutil
from msgspec import Struct

from redrived.processes import proc

PAGE = os.sysconf("SC_PAGE_SIZE")


class Usage(Struct, frozen=True, kw_only=True):
    """Of one tree."""

    cpu: float  # percent of one core since the last look
    memory: int  # bytes in RAM
    children: int  # everybody but the leader


class NodeUsage(Struct, frozen=True, kw_only=True):
    cpu: float  # percent of all cores since the last look
    memory: int


class Sampler:
    """Remembers the last look, because a percentage needs two."""

    def __init__(self) -> None:
        self._looked_at = time.monotonic()
        self._cpu_before: dict[tuple[int, int], int] = {}

    def trees(self, trees: Iterable[Iterable[int]]) -> list[Usage | None]:
        """The usage of each, by the processes known of it; none where nobody is there any more."""
        now = time.monotonic()
        ticks_passed = max(now - self._looked_at, 0.01) * proc.TICKS_PER_SECOND
        cpu_now: dict[tuple[int, int], int] = {}
        usages: list[Usage | None] = []
        for members in map(living, trees):
            times = {(facts.pid, facts.started): facts.cpu for facts in members}
            used = sum(cpu - self._cpu_before.get(who, 0) for who, cpu in times.items())
            cpu_now |= times
            usage = Usage(
                cpu=100 * used / ticks_passed,
                memory=sum(facts.rss for facts in members) * PAGE,
                children=len(members) - 1,
            )
            usages.append(usage if members else None)
        self._looked_at = now
        self._cpu_before = cpu_now
        return usages

    def node(self) -> NodeUsage:
        memory = psutil.virtual_memory()
        return NodeUsage(
            cpu=psutil.cpu_percent(),
            memory=memory.total - memory.available,
        )


def living(known: Iterable[int]) -> list[proc.Stat]:
    """These processes and all below them, in that order."""
    found: dict[int, proc.Stat] = {}
    waiting = deque(known)
    while waiting:
        pid = waiting.popleft()
        facts = None if pid in found else proc.stat(pid)
        if facts is not None and not facts.is_dead:
            found[pid] = facts
            waiting.extend(proc.children(pid))
    return list(found.values())
