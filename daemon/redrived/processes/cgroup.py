"""A control group per command and worker, where systemd has delegated its own to the daemon.

`cgroup.kill` takes everything at once, whatever forked or changed its session, and the
kernel counts there whom it killed for memory. Without delegation there is none, and trees
are ended by session, group and mark alone.
"""

from __future__ import annotations

import os
from pathlib import Path

_MOUNT = Path("/sys/fs/cgroup")


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
        """Everybody alive in it."""
        return {int(pid) for pid in self._read("cgroup.procs").split()}

    def kill(self) -> None:
        self._write("cgroup.kill", "1")

    def out_of_memory(self) -> bool:
        """Whether the kernel has killed somebody in it for memory."""
        return any(
            line.startswith("oom_kill ") and line != "oom_kill 0"
            for line in self._read("memory.events").splitlines()
        )

    def remove(self) -> None:
        try:
            self._folder.rmdir()
        except OSError:
            self.kill()  # who is still in it is not to stay; it goes with the daemon's own group

    def _write(self, name: str, value: str) -> None:
        try:
            (self._folder / name).write_text(value)
        except OSError:
            pass  # no such process any more, or a kernel before 5.14; the other ways remain

    def _read(self, name: str) -> str:
        try:
            return (self._folder / name).read_text()
        except OSError:
            return ""


def delegated() -> Path | None:
    """Our own group, when we may make groups below it."""
    own = next(
        (
            line.removeprefix("0::").lstrip("/")
            for line in Path("/proc/self/cgroup").read_text().splitlines()
            if line.startswith("0::")
        ),
        None,
    )
    if own is None or not (_MOUNT / "cgroup.controllers").exists():
        return None
    folder = _MOUNT / own
    return folder if _is_delegated(folder) else None


def _is_delegated(folder: Path) -> bool:
    """Root may write everywhere, so the mark that systemd leaves decides."""
    for attribute in ("user.delegate", "trusted.delegate"):
        try:
            if os.getxattr(folder, attribute) == b"1":
                return True
        except OSError:
            pass
    return os.geteuid() != 0 and os.access(folder, os.W_OK)
