"""The file that a worker prints to, `outputs/live/POOL.N`, until an attempt is given it.

The worker gives it away itself when an attempt ends that has printed; what is done here is for
the daemon, while the worker runs and once it is dead. A file that cannot be written costs the
output, never the work.
"""

from __future__ import annotations

import os

_LAST_LINES = 2000  # bytes
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


class LiveOutput:
    """Used by the main loop only."""

    def __init__(self, outputs: str, worker: str) -> None:
        self.path = os.path.join(outputs, "live", worker)
        self._outputs = outputs

    def open(self) -> int:
        """What its worker is to print to from the start."""
        try:
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            return os.open(self.path, _FLAGS | os.O_CREAT | os.O_TRUNC, 0o600)
        except OSError:
            return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)

    def size(self) -> int:
        """Bytes that the job which runs has printed so far."""
        try:
            return os.path.getsize(self.path)
        except OSError:
            return 0

    def cut(self, limit: int) -> None:
        """Keep no more than that; the worker, which may go on printing, appends to it."""
        try:
            file = os.open(self.path, _FLAGS)
        except OSError:
            return  # it is an attempt's by now
        try:
            if os.fstat(file).st_size > limit:
                os.ftruncate(file, limit)
        except OSError:
            pass  # a broken disk takes no more of it either
        finally:
            os.close(file)

    def last_lines(self) -> str:
        """The end of what was printed and no attempt has claimed."""
        try:
            with open(self.path, "rb") as live:
                live.seek(max(0, os.fstat(live.fileno()).st_size - _LAST_LINES))
                return live.read().decode("utf-8", "replace").strip()
        except OSError:
            return ""

    def keep(self, job: int, execution: int) -> bool:
        """Give it to the attempt in which the worker died, if it printed anything."""
        target = os.path.join(self._outputs, str(job // 1000), f"{job}.{execution}.out")
        try:
            if not os.path.getsize(self.path):
                return False
            os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
            os.rename(self.path, target)
        except OSError:
            return False
        return True

    def remove(self) -> None:
        try:
            os.unlink(self.path)
        except OSError:
            pass  # it is an attempt's by now, or there never was one
