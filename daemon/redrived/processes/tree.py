"""Ending everything an attempt started, children that ran away included.

A tree is what its leader's session and process group hold, their descendants, and orphans
that came to us (`parent.become_parent`) and are known by the tree's mark in their environment.
Who has cleared that is known by what it prints to, a file that this tree alone has while it is
there; and who prints elsewhere, when one tree only is old enough to be its own. Whoever is in
a session with one of these belongs to it as well.

A foreign process is never signalled: single processes are signalled by identity, groups only
while a member seen a moment ago shows that they are ours.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

from msgspec import Struct

from redrived.processes import proc
from redrived.processes.census import Census, Orphan, Processes, is_orphan
from redrived.processes.cgroup import Cgroup
from redrived.processes.cgroups import Cgroups
from redrived.processes.identity import Identity
from redrived.processes.marks import mark_in
from redrived.processes.spawn import end_at_once
from redrived.processes.stuck import stuck_words

log = logging.getLogger(__name__)

OWNER = "REDRIVE_STORE"  # in the environment of everything this node has ever started

_PATIENCE = 10.0  # seconds until what ignores SIGKILL (disk sleep, a freezer) is called unkillable

_STARTING = 100  # ticks that may lie between a leader's start and its being held


class Tree(Struct, frozen=True):
    """One leader and whatever it starts."""

    pid: int  # of the leader, its session and its process group
    mark: bytes  # an entry of its environment, as `REDRIVE_ATTEMPT=12.34`, that no other tree has
    since: int  # ticks; nobody in it is older
    cgroup: Cgroup | None = None
    files: Callable[[], Collection[proc.FileId]] = tuple  # what its processes print to

    def pids(self) -> list[int]:
        """Its leader, and whoever is in its cgroup."""
        others: set[int] = set() if self.cgroup is None else self.cgroup.members() - {self.pid}
        return [self.pid, *sorted(others)]


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

    def __init__(
        self, owner: str, patience: float = _PATIENCE, cgroups: Cgroups | None = None
    ) -> None:
        self.owner = owner
        self._patience = patience
        self.has_cgroups = cgroups is not None
        self._cgroups = cgroups
        self._owner_mark = f"{OWNER}={owner}".encode()
        self._session = os.getsid(0)
        self._since = proc.ticks()  # a child that is older was never an attempt's
        self._untouchable = {1} | proc.ancestors(os.getpid())
        self._held: dict[int, Tree] = {}
        self._ending: dict[int, Tree] = {}
        self._by_mark: dict[bytes, Tree] = {}  # of both
        # Orphans without a mark: when each started, and for whom it prints.
        self._printing: dict[int, tuple[int, Tree | None]] = {}
        self._looking = ThreadPoolExecutor(1, thread_name_prefix="census")
        self._one_at_a_time = asyncio.Lock()
        self._coming: asyncio.Task[Census] | None = None  # asked for, not begun
        self._reaped_at = self._reaping_took = 0.0

    @property
    def reach(self) -> str:
        """How far the end of an attempt reaches, in words."""
        if self._cgroups is None:
            return (
                "an attempt is ended by session, mark and output: there is no cgroup to make"
                " others in (under systemd, `Delegate=yes` gives one)"
            )
        return f"an attempt is ended by its cgroup, in {self._cgroups.own.folder}"

    def cgroup(self, name: str) -> Cgroup | None:
        """A new one, for a tree about to be started, where there are any."""
        return self._cgroups.own.create(name) if self._cgroups else None

    def hold(
        self,
        pid: int,
        mark: str,
        cgroup: Cgroup | None = None,
        files: Callable[[], Collection[proc.FileId]] = tuple,
    ) -> Tree:
        """A child of ours, just started in a session of its own, leads a tree."""
        tree = Tree(pid, mark.encode(), proc.ticks() - _STARTING, cgroup, files)
        self._held[pid] = self._by_mark[tree.mark] = tree
        return tree

    def abandon(self, tree: Tree, pidfd: int) -> None:
        """End a program just started, whose exit nobody would see."""
        os.close(pidfd)
        end_at_once(tree.pid)
        self.release(tree)

    def release(self, tree: Tree) -> bool:
        """Its leader has been reaped; says whether others of it are still there."""
        return self.release_all([tree])[0]

    def release_all(self, trees: Sequence[Tree]) -> list[bool]:
        """The same for leaders that have exited at one moment, with one look for all of them."""
        orphans: list[Orphan] | None = None
        try:
            orphans = self._orphans()
        except OSError as error:
            _cannot_look(error)  # then there may be some: whoever ends them looks again
        left: list[bool] = []
        for tree in trees:
            # The group's first: it is where they mostly are.
            left.append(
                orphans is None
                or (tree.cgroup is not None and tree.cgroup.members() != set())
                or _group_exists(tree.pid)
                or any(self._is_of(tree, orphan) for orphan in orphans)
            )
            self._held.pop(tree.pid, None)
            self._forget(tree)
        return left

    def is_alone(self, tree: Tree) -> bool:
        """Whether its leader is all there is of it: what it started is below it, or came to us."""
        if tree.cgroup is not None and tree.cgroup.members() - {tree.pid}:
            return False
        try:
            children = [proc.stat(pid) for pid in proc.children(tree.pid)]
            orphans = self._orphans()
        except OSError as error:
            _cannot_look(error)
            return False
        return all(child is None or child.is_dead for child in children) and not any(
            tree.pid in (orphan.facts.session, orphan.facts.group) or self._is_of(tree, orphan)
            for orphan in orphans
        )

    async def end(self, tree: Tree, grace: float) -> Ended:
        """SIGTERM and `grace` seconds for the leader's group, then SIGKILL for everybody."""
        self._ending[tree.pid] = self._by_mark[tree.mark] = tree
        try:
            # While its leader is held, nobody else can have the number of its group.
            if grace > 0 and tree.pid in self._held:
                _signal_group(tree.pid, signal.SIGTERM)
                _signal_group(tree.pid, signal.SIGCONT)  # a stopped process hears nothing
                await self._group_gone(tree.pid, grace)
            cgroups = () if tree.cgroup is None else (tree.cgroup,)
            return await self._kill(lambda: self._members(tree), cgroups, tree)
        finally:
            self._ending.pop(tree.pid, None)
            self._forget(tree)

    def _forget(self, tree: Tree) -> None:
        if tree.pid not in self._held and tree.pid not in self._ending:
            self._by_mark.pop(tree.mark, None)
            if self._printing:
                self._printing = {
                    pid: known for pid, known in self._printing.items() if known[1] is not tree
                }

    async def end_leftovers(self, outputs: str) -> Ended:
        """Kill what an earlier daemon left running: all with our mark, whoever has cleared it
        and prints into the folder that is for our outputs, and everybody in its cgroup.
        """
        cgroups = self._cgroups.left if self._cgroups else ()
        ended = await self._kill(
            lambda: self._leftovers(os.path.realpath(outputs), cgroups), cgroups
        )
        for cgroup in cgroups:
            cgroup.remove()
        return ended

    def marks_left(self) -> dict[int, str]:
        """Who is left in the cgroups of an earlier daemon, and the mark that those tell of."""
        return {
            pid: mark_in(cgroup.folder.name)
            for left in (self._cgroups.left if self._cgroups else ())
            for cgroup in left.inside()
            for pid in cgroup.members()
        }

    def sweep(self) -> list[int]:
        """Once a second: reap orphans, kill those that have outlived their tree; returns these."""
        orphans = self._orphans()
        outlived = [orphan.facts for orphan in orphans if not self._possible_trees(orphan)]
        living = {orphan.facts.pid for orphan in orphans}
        self._printing = {pid: known for pid, known in self._printing.items() if pid in living}
        return [facts.pid for facts in outlived if _kill_one(facts)]

    async def _members(self, tree: Tree) -> Processes:
        """Everybody alive in a tree that is being ended."""
        census = await self._census()
        roots = set(census.marked(tree.mark))
        if tree.cgroup is not None:
            roots |= tree.cgroup.members()
        roots |= {o.facts.pid for o in census.strays(self._owner_mark) if self._is_of(tree, o)}
        # Once the leader is reaped, somebody with its number is a stranger, and so is a session.
        if tree.pid in self._held or tree.pid not in census.table:
            roots.update(census.members(tree.pid))
        # A session of its own, made by one of the tree, has nobody else in it.
        for session in {census.table[pid].session for pid in roots & census.adopted}:
            roots.update(census.members(session))
        return census.family(roots, lambda pid: self._is_not_to_be_touched(pid, tree))

    async def _leftovers(self, outputs: str, cgroups: Sequence[Cgroup]) -> Processes:
        def is_left(pid: int) -> bool:
            return self._owner_mark in proc.environment(pid) or proc.prints_below(pid, outputs)

        def look() -> Processes:
            census = Census(proc.everybody())
            mine = census.family(held, lambda pid: False).keys()
            roots = set(filter(is_left, census.table)).union(*(each.members() for each in cgroups))
            return census.family(roots, lambda pid: pid in self._untouchable or pid in mine)

        held = list(self._held)
        return await asyncio.get_running_loop().run_in_executor(self._looking, look)

    async def _census(self) -> Census:
        """One that is begun from now on; whoever asks while another is taken shares the next."""
        if self._coming is None:
            self._coming = asyncio.create_task(self._take_census())
        return await asyncio.shield(self._coming)

    async def _take_census(self) -> Census:
        async with self._one_at_a_time:
            self._coming = None
            take = partial(Census.take, frozenset(self._held), self._session, self._since)
            census = await asyncio.get_running_loop().run_in_executor(self._looking, take)
        for pid in census.dead:
            if pid not in self._held:  # it may have been started meanwhile
                _reap(pid)
        return census

    def _is_not_to_be_touched(self, pid: int, tree: Tree) -> bool:
        return pid in self._untouchable or self._held.get(pid, tree) is not tree

    def _orphans(self) -> list[Orphan]:
        """Living children that came to us when their parent exited; dead ones are reaped."""
        living: list[Orphan] = []
        for pid in proc.adopted():
            facts = None if pid in self._held else proc.stat(pid)
            if facts is None or not is_orphan(facts, self._session, self._since):
                continue
            if facts.is_dead:
                _reap(pid)
            else:
                living.append(Orphan(facts, proc.environment(pid)))
        return living

    def _is_of(self, tree: Tree, orphan: Orphan) -> bool:
        return self._possible_trees(orphan) == [tree]

    def _possible_trees(self, orphan: Orphan) -> list[Tree]:
        """Whose orphan it may be: its mark decides; without one (`env -i`) what it prints to,
        and then its age."""
        facts, entries = orphan
        marked = [tree for entry in entries if (tree := self._by_mark.get(entry))]
        if marked or self._owner_mark in entries:
            return marked
        if (printing := self._tree_it_prints_for(facts)) is not None:
            return [printing]
        return [tree for tree in self._by_mark.values() if tree.since <= facts.started]

    def _tree_it_prints_for(self, orphan: proc.Stat) -> Tree | None:
        """Looked for once: an orphan may stay for long, and there may be many trees."""
        started, tree = self._printing.get(orphan.pid, (None, None))
        if started == orphan.started:
            return tree
        files = proc.prints_to(orphan.pid)
        trees = self._by_mark.values() if files else ()
        tree = next((tree for tree in trees if not files.isdisjoint(tree.files())), None)
        self._printing[orphan.pid] = orphan.started, tree
        return tree

    async def _group_gone(self, group: int, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        pause = 0.005
        while _group_exists(group) and (left := deadline - loop.time()) > 0:
            await asyncio.sleep(min(pause, left))
            pause = min(pause * 2, 0.1)
            self._reap_some()  # a dead member we have not reaped still counts as the group

    def _reap_some(self) -> None:
        """For all who wait; with many orphans about, for a tenth of the time at most."""
        began = time.monotonic()
        if began - self._reaped_at >= 10 * self._reaping_took:
            with suppress(OSError):
                self._orphans()
            self._reaped_at = time.monotonic()
            self._reaping_took = self._reaped_at - began

    async def _kill(
        self,
        find: Callable[[], Awaitable[Processes]],
        cgroups: Sequence[Cgroup],
        tree: Tree | None = None,
    ) -> Ended:
        """SIGKILL until two looks in a row find nobody: one may miss a child being born."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience
        seen: Processes = {}
        empty_looks = 0
        pause = 0.002
        while empty_looks < 2 and loop.time() < deadline:
            for cgroup in cgroups:
                seen |= _living_in(cgroup)  # nobody finds them afterwards
                cgroup.kill()
            living = await _found(find)
            if living is not None:
                empty_looks = 0 if living else empty_looks + 1
                seen |= living
                _kill_all(living)
            await asyncio.sleep(pause)
            pause = min(pause * 2, 0.1)
        still_there = (await _found(find) or {}) if empty_looks < 2 else {}
        if still_there:
            log.error("%s", stuck_words(sorted(still_there)))
        return Ended(
            killed=tuple(sorted(seen.keys() - still_there.keys())),
            escaped=tuple(
                sorted(pid for pid, facts in seen.items() if tree and facts.session != tree.pid)
            ),
            unkillable=tuple(sorted(still_there)),
        )


async def _found(find: Callable[[], Awaitable[Processes]]) -> Processes | None:
    """None when nobody can tell: the daemon has no descriptor, or no memory, to look with."""
    try:
        return await find()
    except OSError as error:
        _cannot_look(error)
        return None


def _living_in(cgroup: Cgroup) -> Processes:
    found = {pid: facts for pid in cgroup.members() if (facts := proc.stat(pid)) is not None}
    return {pid: facts for pid, facts in found.items() if not facts.is_dead}


def _cannot_look(error: OSError) -> None:
    log.warning("nobody can be looked for in /proc: %s", error.strerror)


def _kill_all(living: Processes) -> None:
    # A group at a time: the kernel lets nobody in it fork away meanwhile.
    for group in {facts.group for facts in living.values()}:
        _signal_group(group, signal.SIGKILL)
    for facts in living.values():
        _kill_one(facts)


def _kill_one(facts: proc.Stat) -> bool:
    try:
        return Identity.from_stat(facts).signal(signal.SIGKILL)
    except OSError:
        # Another user's by now (sudo): it stays, and is shown as unkillable. Or there is no
        # descriptor to hold it by: its group has been killed, and it is looked for again.
        return False


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
