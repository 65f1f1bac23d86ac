"""A control group: of a command, a worker or a hook, or of the daemon, with all of them in it.

`cgroup.kill` takes everything at once, whatever forked or changed its session, and the
kernel counts there whom it killed for memory. Who is in it may make groups inside.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


class Cgroup:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def create(self, name: str) -> Cgroup | None:
        """A new one inside. None when the kernel refuses, as it may at a limit."""
        folder = self.folder / name
        try:
            folder.mkdir()
        except OSError:
            return None
        return Cgroup(folder)

    def inside(self) -> list[Cgroup]:
        """Those that were made in it."""
        with suppress(OSError):
            return [Cgroup(Path(entry)) for entry in os.scandir(self.folder) if entry.is_dir()]
        return []

    @property
    def door(self) -> Path:
        """Whoever writes a process into this file brings it in, and what it forks from then on."""
        return self.folder / "cgroup.procs"

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
            for line in _read(self.folder / "memory.events").splitlines()
        )

    def remove(self) -> None:
        """With all that is inside."""
        try:
            self.folder.rmdir()
        except OSError:
            self.kill()  # who is still in it is not to stay; it goes with the daemon's own group
            for folder in self._folders():
                with suppress(OSError):
                    folder.rmdir()

    def _folders(self) -> list[Path]:
        """Its own and those below, the lowest first."""
        return [Path(folder) for folder, _, _ in os.walk(self.folder, topdown=False)]

    def _write(self, name: str, value: str) -> None:
        try:
            (self.folder / name).write_text(value)
        except OSError:
            pass  # no such process any more, or a kernel before 5.14; the other ways remain


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
