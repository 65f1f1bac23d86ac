"""One look at every process of the machine, arranged for who has trees to end.

Reading thousands of processes takes a tenth of a second, so this happens in a thread, and
everybody who has to end something at that moment shares the answer. It is a picture of a
moment: a process may be gone by now, or have been born unseen.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from redrived.processes import proc

Processes = dict[int, proc.Stat]


class Orphan(NamedTuple):
    """A living process that came to us when its parent exited."""

    facts: proc.Stat
    entries: frozenset[bytes]  # of its environment


def is_orphan(child: proc.Stat, session: int, since: int) -> bool:
    """Whether a child that nobody holds is of a tree, as those have sessions of their own.

    One in our session belongs to other code of ours; nobody in a tree is older than `since`.
    """
    return child.session != session and child.started >= since


class Census:
    """Who is there, by what trees are known by."""

    def __init__(self, table: Processes) -> None:
        self.table = table
        self.orphans: list[Orphan] = []
        self.dead: list[int] = []  # orphans of which only the status is left
        self._marked: dict[bytes, list[int]] = {}  # orphans, by entries of their environment
        self._members: dict[int, list[int]] = {}  # of a session or a group
        self._children: dict[int, list[int]] = {}
        for pid, facts in table.items():
            self._children.setdefault(facts.parent, []).append(pid)
            for number in {facts.session, facts.group}:
                self._members.setdefault(number, []).append(pid)

    @classmethod
    def take(cls, held: Collection[int], session: int, since: int) -> Census:
        """`held` are children that are no orphans."""
        census = cls(proc.everybody())
        for pid in census._children.get(os.getpid(), ()):
            facts = census.table[pid]
            if pid in held or not is_orphan(facts, session, since):
                continue
            if facts.is_dead:
                census.dead.append(pid)
            else:
                census._note(Orphan(facts, proc.environment(pid)))
        return census

    def _note(self, orphan: Orphan) -> None:
        self.orphans.append(orphan)
        for entry in orphan.entries:
            self._marked.setdefault(entry, []).append(orphan.facts.pid)

    def marked(self, entry: bytes) -> list[int]:
        """The orphans with this in their environment."""
        return self._marked.get(entry, [])

    @property
    def adopted(self) -> set[int]:
        """All orphans."""
        return {orphan.facts.pid for orphan in self.orphans}

    def strays(self, entry: bytes) -> list[Orphan]:
        """The orphans without this in their environment."""
        return [orphan for orphan in self.orphans if entry not in orphan.entries]

    def members(self, number: int) -> list[int]:
        """Whoever is in the session or the group with this number."""
        return self._members.get(number, [])

    def family(self, roots: Iterable[int], is_spared: Callable[[int], bool]) -> Processes:
        """The living of the roots and below; nothing is looked for below who is spared."""
        found: Processes = {}
        waiting = list(roots)
        while waiting:
            pid = waiting.pop()
            if pid in self.table and pid not in found and not is_spared(pid):
                found[pid] = self.table[pid]
                waiting.extend(self._children.get(pid, ()))
        return {pid: facts for pid, facts in found.items() if not facts.is_dead}
