"""The control groups of one daemon, where it may make any: below a group that systemd has
delegated to it, or that its user may write to.

Two daemons may be at home in one group, as in a scope that somebody has opened for both, and
one may be a job of the other. So each has a group that nobody else uses, and makes all others
in it. That bears the number of the lock on its state, which no two daemons hold at a time, and
of its start: who finds there what was left on the same state ends it, and counts nothing of it.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from msgspec import Struct

from redrived.processes.cgroup import Cgroup

_MOUNTS = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))  # alone, or beside version 1
_UNITS = (".service", ".scope", ".slice")  # of systemd; what is above one is not its own
_DAEMON = ".redrive"  # how the name of a daemon's group ends
_LEAF = "supervisor"

log = logging.getLogger(__name__)


class Cgroups(Struct, frozen=True):
    own: Cgroup  # those of attempts, workers and hooks are in it
    left: tuple[Cgroup, ...] = ()  # by earlier daemons on the same state

    def remove(self) -> None:
        """At the end of the daemon, and whatever has not gone at its start."""
        for each in (self.own, *self.left):
            each.remove()


def prepared(state: str, start: str) -> Cgroups | None:
    """Where there may be any; to be called once, before there are children."""
    above = delegated()
    if above is None:
        return None
    left = tuple(map(Cgroup, above.glob(f"{state}.*{_DAEMON}")))
    share_out(above, "memory")
    own = Cgroup(above).create(f"{state}.{start}{_DAEMON}")
    if own is None:
        return None
    share_out(own.folder, "memory")
    return Cgroups(own, left)


def share_out(folder: Path, controller: str) -> None:
    """Let the kernel count for each group below, if it counts here at all.

    It does so only while nobody is in the group itself, so we go into a leaf. Where somebody
    else is in it, or another hierarchy has the controller, groups are made without.
    """
    try:
        if controller not in (folder / "cgroup.controllers").read_text().split():
            return
        if folder == _own():
            leaf = folder / _LEAF
            leaf.mkdir(exist_ok=True)
            (leaf / "cgroup.procs").write_text(str(os.getpid()))
        (folder / "cgroup.subtree_control").write_text(f"+{controller}")
    except OSError as error:
        log.warning("the cgroups of attempts have no %s controller: %s", controller, error)


def delegated() -> Path | None:
    """Our own group, or the one above it, when we may make groups below it.

    It is the one above if systemd has started us in a leaf (`DelegateSubgroup=`).
    """
    own = _own()
    if own is None:
        return None
    if any(folder.suffix == _DAEMON for folder in own.parents):
        return own  # we are a job of another daemon, and what we start ends with it
    ours = (own,) if own.suffix in _UNITS else (own, own.parent)
    marked = next((folder for folder in ours if _is_marked(folder)), None)
    if marked is None and os.geteuid() != 0 and os.access(own, os.W_OK):
        return own  # not every systemd leaves a mark that all can read
    return marked


def _own() -> Path | None:
    """The folder of the group that we are in."""
    mount = next((each for each in _MOUNTS if (each / "cgroup.controllers").exists()), None)
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        if mount is not None and line.startswith("0::"):
            return mount / line.removeprefix("0::").lstrip("/")
    return None


def _is_marked(folder: Path) -> bool:
    """By systemd, as delegated; root may write everywhere, which says nothing."""
    for attribute in ("user.delegate", "trusted.delegate"):
        try:
            if os.getxattr(folder, attribute) == b"1":
                return True
        except OSError:
            pass
    return False
