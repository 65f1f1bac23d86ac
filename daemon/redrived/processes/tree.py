"""Ending everything an attempt started, children that ran away included.

A tree is what its leader's session and process group hold, their descendants, and orphans
that came to us (`parent.become_parent`) and carry the tree's mark in their environment. A
foreign process is never signalled: single processes are signalled by identity, groups only
while a member seen a moment ago shows that they are ours.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet

from msgspec import Struct

from redrived.processes import proc
from redrived.processes.cgroup import Cgroup
from redrived.processes.identity import Identity

log = logging.getLogger(__name__)

OWNER = "REDRIVE_STORE"  # in the environment of everything this node has ever started

_PATIENCE = 10.0  # seconds until what ignores SIGKILL (disk sleep, a freezer) is called unkillable

_STARTING = 100  # ticks that may lie between a leader's start and its being held

_Processes = dict[int, proc.Stat]


class Tree(Struct, frozen=True):
    """One leader and whatever it starts."""

    pid: int  # of the leader, its session and its process group
    mark: bytes  # an entry of its environment, as `REDRIVE_ATTEMPT=12.34`, that no other tree has
    since: int  # ticks; nobody in it is older
    cgroup: Cgroup | None = None

    def leader(self) -> Identity | None:
        """For the store. Not asked at the start: /proc would make us wait for the exec."""
        return Identity.of(self.pid)


class Ended(Struct, frozen=True, kw_only=True):
    """What it took; `unkillable` processes are still there."""

    killed: tuple[int, ...] = ()  # with SIGKILL
    escaped: tuple[int, ...] = ()  # of these, who had left the leader's session
    unkillable: tuple[int, ...] = ()

    def told(self) -> dict[str, list[int]]:
        """What of it a person should know."""
        found = {"escaped": self.escaped, "unkillable": self.unkillable}
        return {name: list(pids) for name, pids in found.items() if pids}


class Trees:
    """Every tree this daemon has running. Used by the main loop only.

    All children of the daemon are held here from start until their holder has reaped them;
    any other child in a session of its own is taken for an orphan of a tree.
    """

    def __init__(self, owner: str, patience: float = _PATIENCE) -> None:
        self.owner = owner
        self._patience = patience
        self._owner_mark = f"{OWNER}={owner}".encode()
        self._session = os.getsid(0)
        self._since = proc.ticks()  # a child that is older was never an attempt's
        self._untouchable = {1} | proc.ancestors(os.getpid())
        self._held: dict[int, Tree] = {}
        self._ending: dict[int, Tree] = {}

    def hold(self, pid: int, mark: str, cgroup: Cgroup | None = None) -> Tree:
        """A child of ours, just started in a session of its own, leads a tree."""
        tree = Tree(pid, mark.encode(), proc.ticks() - _STARTING, cgroup)
        self._held[pid] = tree
        return tree

    def release(self, tree: Tree) -> bool:
        """Its leader has been reaped; says whether others of it are still there."""
        # The group's first: it costs next to nothing, and is where they mostly are.
        others_are_left = _group_exists(tree.pid) or bool(self._orphans_of(tree))
        self._held.pop(tree.pid, None)
        return others_are_left

    def is_alone(self, tree: Tree) -> bool:
        """Whether its leader is all there is of it; looks at every process there is."""
        return self._members(tree).keys() <= {tree.pid}

    async def end(self, tree: Tree, grace: float) -> Ended:
        """SIGTERM and `grace` seconds for the leader's group, then SIGKILL for everybody."""
        self._ending[tree.pid] = tree
        try:
            # While its leader is held, nobody else can have the number of its group.
            if grace > 0 and tree.pid in self._held:
                _signal_group(tree.pid, signal.SIGTERM)
                _signal_group(tree.pid, signal.SIGCONT)  # a stopped process hears nothing
                await self._group_gone(tree.pid, grace)
            return await self._kill(lambda: self._members(tree), tree)
        finally:
            self._ending.pop(tree.pid, None)

    async def end_leftovers(self, recorded: Iterable[Identity]) -> Ended:
        """Kill what an earlier daemon left running: known leaders, and all with our mark."""
        leaders = tuple(recorded)
        return await self._kill(lambda: self._leftovers(leaders))

    def sweep(self) -> list[int]:
        """Once a second: reap orphans, kill those that have outlived their tree; returns these."""
        outlived = [facts for facts in self._orphans() if not self._possible_trees(facts)]
        return [facts.pid for facts in outlived if _kill_one(facts)]

    def _members(self, tree: Tree) -> _Processes:
        """Everybody alive in a tree that is being ended."""
        roots = {facts.pid for facts in self._orphans_of(tree)}
        table = proc.everybody()
        # Once the leader is reaped, somebody with its number is a stranger, and so is a session.
        if tree.pid in self._held or tree.pid not in table:
            roots |= {
                facts.pid for facts in table.values() if tree.pid in (facts.session, facts.group)
            }
        others = {pid for pid, other in self._held.items() if other is not tree}
        return _living(_family(roots, table, spared=self._untouchable | others))

    def _leftovers(self, leaders: Iterable[Identity]) -> _Processes:
        alive = {leader.pid for leader in leaders if leader.is_alive()}
        table = proc.everybody()
        roots = {
            pid
            for pid, facts in table.items()
            if facts.session in alive
            or facts.group in alive
            or self._owner_mark in proc.environment(pid)
        }
        held = _family(self._held, table, spared=set()).keys()
        return _living(_family(roots, table, spared=self._untouchable | held))

    def _orphans(self) -> list[proc.Stat]:
        """Living children that came to us when their parent exited; dead ones are reaped."""
        living: list[proc.Stat] = []
        for pid in proc.adopted():
            facts = None if pid in self._held else proc.stat(pid)
            # Trees have sessions of their own: a child in ours belongs to other code of ours.
            if facts is None or facts.session == self._session or facts.started < self._since:
                continue
            if facts.is_dead:
                _reap(pid)
            else:
                living.append(facts)
        return living

    def _orphans_of(self, tree: Tree) -> list[proc.Stat]:
        return [facts for facts in self._orphans() if self._possible_trees(facts) == [tree]]

    def _possible_trees(self, orphan: proc.Stat) -> list[Tree]:
        """Whose orphan it may be: its mark decides, and without one (`env -i`) its age."""
        trees = (self._held | self._ending).values()
        entries = proc.environment(orphan.pid)
        marked = [tree for tree in trees if tree.mark in entries]
        if marked or self._owner_mark in entries:
            return marked
        return [tree for tree in trees if tree.since <= orphan.started]

    async def _group_gone(self, group: int, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        pause = 0.005
        while _group_exists(group) and (left := deadline - loop.time()) > 0:
            await asyncio.sleep(min(pause, left))
            pause = min(pause * 2, 0.1)
            self._orphans()  # a dead member we have not reaped still counts as the group

    async def _kill(self, find: Callable[[], _Processes], tree: Tree | None = None) -> Ended:
        """SIGKILL until two looks in a row find nobody: one may miss a child being born."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience
        seen: _Processes = {}
        empty_looks = 0
        pause = 0.002
        while empty_looks < 2 and loop.time() < deadline:
            if tree is not None and tree.cgroup is not None:
                tree.cgroup.kill()
            living = find()
            empty_looks = 0 if living else empty_looks + 1
            seen |= living
            _kill_all(living)
            await asyncio.sleep(pause)
            pause = min(pause * 2, 0.1)
        still_there = find() if empty_looks < 2 else {}
        if still_there:
            log.error("cannot be killed, and still there: %s", sorted(still_there))
        return Ended(
            killed=tuple(sorted(seen.keys() - still_there.keys())),
            escaped=tuple(
                sorted(pid for pid, facts in seen.items() if tree and facts.session != tree.pid)
            ),
            unkillable=tuple(sorted(still_there)),
        )


def _family(roots: Iterable[int], table: _Processes, spared: AbstractSet[int]) -> _Processes:
    """The roots and everybody below them; nothing is looked for below who is spared."""
    children: dict[int, list[int]] = {}
    for facts in table.values():
        children.setdefault(facts.parent, []).append(facts.pid)
    found: _Processes = {}
    waiting = list(roots)
    while waiting:
        pid = waiting.pop()
        if pid in table and pid not in found and pid not in spared:
            found[pid] = table[pid]
            waiting.extend(children.get(pid, ()))
    return found


def _living(processes: _Processes) -> _Processes:
    return {pid: facts for pid, facts in processes.items() if not facts.is_dead}


def _kill_all(living: _Processes) -> None:
    # A group at a time: the kernel lets nobody in it fork away meanwhile.
    for group in {facts.group for facts in living.values()}:
        _signal_group(group, signal.SIGKILL)
    for facts in living.values():
        _kill_one(facts)


def _kill_one(facts: proc.Stat) -> bool:
    try:
        return Identity.from_stat(facts).signal(signal.SIGKILL)
    except PermissionError:
        return False  # another user's by now (sudo); it stays, and is shown as unkillable


def _signal_group(group: int, number: signal.Signals) -> None:
    if group <= 1 or group == os.getpgrp():
        return
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        pass


def _group_exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _reap(pid: int) -> None:
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG)
    except ChildProcessError:
        pass
