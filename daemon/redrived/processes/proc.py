"""What /proc says about processes: plain facts, read once, no decisions.

A process may vanish between two reads, so every answer may be "nothing" (`None`, empty);
what that means is for the caller to say.
"""

from __future__ import annotations

import os
import time
from functools import cache
from stat import S_ISREG
from typing import NamedTuple

FileId = tuple[int, int]  # device and inode: it names a file for as long as it is open

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class Stat(NamedTuple):
    """The fields of /proc/PID/stat that we use; times are in clock ticks."""

    pid: int
    state: str
    parent: int
    group: int
    session: int
    cpu: int
    threads: int
    started: int  # since boot; with the pid and the boot id it names a process for ever
    rss: int  # pages

    @property
    def is_dead(self) -> bool:
        """Only its status is left. A leader whose other threads still run looks like a zombie."""
        return self.state in "ZX" and self.threads <= 1


def stat(pid: int) -> Stat | None:
    text = _read(f"/proc/{pid}/stat")
    if not text:
        return None
    # The name in parentheses may hold spaces and parentheses of its own.
    field = text[text.rindex(b")") + 2 :].split()
    return Stat(
        pid=pid,
        state=field[0].decode(),
        parent=int(field[1]),
        group=int(field[2]),
        session=int(field[3]),
        cpu=int(field[11]) + int(field[12]),
        threads=int(field[17]),
        started=int(field[19]),
        rss=int(field[21]),
    )


def ticks() -> int:
    """Now, as `Stat.started` counts."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * TICKS_PER_SECOND)


def everybody() -> dict[int, Stat]:
    """All processes there are; some 10 µs each, so not for every second."""
    pids = (int(name) for name in os.listdir("/proc") if name.isdecimal())
    return {pid: facts for pid in pids if (facts := stat(pid)) is not None}


def children(pid: int) -> list[int]:
    """The direct children; costs as much as there are threads, whatever else runs here."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            found.extend(map(int, _read(f"/proc/{pid}/task/{thread}/children").split()))
    except FileNotFoundError:
        pass
    return found


def adopted() -> list[int]:
    """Our own children: what the main thread has started, and the orphans that came to us.

    The kernel gives orphans to the first thread, and nobody else here starts processes.
    """
    return [int(pid) for pid in _again(_own_children(os.getpid())).split()]


@cache
def _own_children(own: int) -> int:
    """Kept open: to open it costs ten times as much as to read it."""
    return os.open(f"/proc/{own}/task/{own}/children", os.O_RDONLY | os.O_CLOEXEC)


def environment(pid: int) -> frozenset[bytes]:
    """The `NAME=value` entries a process was started with; none when we may not look."""
    return frozenset(_read(f"/proc/{pid}/environ").split(b"\0"))


def prints_to(pid: int) -> set[FileId]:
    """The files that are its stdout and stderr; none when we may not look."""
    found: set[FileId] = set()
    for stream in (1, 2):
        try:
            facts = os.stat(f"/proc/{pid}/fd/{stream}")
        except OSError:
            continue  # it has none, is gone, or is another user's by now
        if S_ISREG(facts.st_mode):
            found.add((facts.st_dev, facts.st_ino))
    return found


def prints_below(pid: int, folder: str) -> bool:
    """Whether its stdout or stderr is a file in that folder, a path without links."""
    for stream in (1, 2):
        try:
            if os.readlink(f"/proc/{pid}/fd/{stream}").startswith(f"{folder}/"):
                return True
        except OSError:
            continue
    return False


def ids_of(path: str) -> list[FileId]:
    """Of the file that is there now, if there is one."""
    try:
        facts = os.stat(path)
    except OSError:
        return []
    return [(facts.st_dev, facts.st_ino)]


def ancestors(pid: int) -> set[int]:
    """The process itself and everybody above it."""
    line: set[int] = set()
    while pid > 0 and (facts := stat(pid)) is not None:
        line.add(pid)
        pid = facts.parent
    return line


def _read(path: str) -> bytes:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""
    try:
        whole = b""
        while part := os.read(file, 65536):
            whole += part
        return whole
    except (ProcessLookupError, PermissionError):
        return b""
    finally:
        os.close(file)


def _again(file: int) -> bytes:
    whole = b""
    while part := os.pread(file, 65536, len(whole)):
        whole += part
    return whole
