"""Empty files that silent attempts have left, for the next attempts to take over.

Making and removing two files for every `true` costs more than running it: ext4 looks
through all recently removed inodes for each new one (measured: 0.7 ms a file after some
thousand). Renaming an empty file costs 5 µs. A straggler of the earlier attempt may still
have it open, though, and what it writes must not turn up in another job's output: the
kernel grants a write lease only to the file's sole user, so we ask for one.
"""

from __future__ import annotations

import fcntl
import os
from collections import deque

_ENOUGH = 64


class SpareFiles:
    def __init__(self) -> None:
        # Oldest first: who had it open is the more likely gone.
        self._paths: deque[str] = deque()

    def put(self, path: str) -> None:
        """An empty file nobody needs; it keeps its name until it is taken."""
        if len(self._paths) < _ENOUGH:
            self._paths.append(path)
            return
        try:
            os.unlink(path)
        except OSError:
            pass  # gone already, with its folder perhaps

    def take(self, path: str, flags: int) -> int | None:
        """An open file of that name; None when there is no spare one that is ours alone."""
        if not self._paths:
            return None
        spare = self._paths.popleft()
        try:
            file = os.open(spare, flags)
        except OSError:
            return None  # removed with its job
        try:
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
            if os.fstat(file).st_size == 0:
                os.rename(spare, path)
                return file
        except OSError:
            self._paths.append(spare)  # still in use, or the new folder is yet to be made
        os.close(file)
        return None
