"""A control group per command and worker, where systemd has delegated its own to the daemon.

`cgroup.kill` takes everything at once, whatever forked or changed its session, and the
kernel counts there whom it killed for memory. Without delegation there is none, and trees
are ended by session, group and mark alone.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from pathlib import Path

_MOUNTS = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))  # alone, or beside version 1
_UNITS = (".service", ".scope", ".slice")  # of systemd; what is above one is not its own
_LEAF = "supervisor"

log = logging.getLogger(__name__)


class Cgroup:
    """The group of one command, or one worker."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def create(cls, above: Path, name: str) -> Cgroup | None:
        """None when the kernel refuses, as it may at a limit; it runs without."""
        folder = above / name
        try:
            folder.mkdir(exist_ok=True)
        except OSError:
            return None
        return cls(folder)

    @property
    def door(self) -> Path:
        """Whoever writes a process into this file brings it in, and what it forks from then on."""
        return self._folder / "cgroup.procs"

    def add(self, pid: int) -> None:
        self._write("cgroup.procs", str(pid))

    def members(self) -> set[int]:
        """Everybody alive in it, and in groups that somebody has made inside."""
        return {
            int(pid) for folder in self._folders() for pid in _read(folder / "cgroup.procs").split()
        }

    def kill(self) -> None:
        self._write("cgroup.kill", "1")

    def out_of_memory(self) -> bool:
        """Whether the kernel has killed somebody in it for memory."""
        return any(
            line.startswith("oom_kill ") and line != "oom_kill 0"
            for line in _read(self._folder / "memory.events").splitlines()
        )

    def remove(self) -> None:
        """With all that is inside."""
        try:
            self._folder.rmdir()
        except OSError:
            self.kill()  # who is still in it is not to stay; it goes with the daemon's own group
            for folder in self._folders():
                with suppress(OSError):
                    folder.rmdir()

    def _folders(self) -> list[Path]:
        """Its own and those below, the lowest first."""
        return [Path(folder) for folder, _, _ in os.walk(self._folder, topdown=False)]

    def _write(self, name: str, value: str) -> None:
        try:
            (self._folder / name).write_text(value)
        except OSError:
            pass  # no such process any more, or a kernel before 5.14; the other ways remain


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""


def prepared() -> Path | None:
    """Where groups may be made, if anywhere; to be called once, before there are children."""
    folder = delegated()
    if folder is not None:
        share_out(folder, "memory")
    return folder


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
