"""Outlives a test process by a moment, and takes its PostgreSQL server with it.

`atexit` does that where a process ends by itself. One that is killed, as by a time limit, would
leave a server and its folder behind each time. The server is a daemon of another user, so that
no death signal of a parent reaches it; but a pipe ends with whoever held it, whatever happened.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

PAUSE = 0.1  # seconds between looks


def main(folder: str) -> None:
    sys.stdin.buffer.read()  # until nobody holds the other end
    while pids := list(processes_of(folder)):
        for pid in pids:
            try:
                os.kill(pid, signal.SIGQUIT)  # to PostgreSQL: end at once, with all sessions
            except ProcessLookupError:
                pass  # it was faster
        time.sleep(PAUSE)
    shutil.rmtree(folder, ignore_errors=True)


def processes_of(folder: str) -> Iterator[int]:
    """The server of a folder, and what makes or starts it, by what stands on their command line."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue  # it has just ended
            if os.fsencode(folder) in words:
                yield int(entry.name)


if __name__ == "__main__":
    main(sys.argv[1])
