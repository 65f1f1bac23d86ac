"""The file that a worker prints to, `outputs/live/POOL.N`, until an attempt is given it.

The worker gives it away itself when an attempt ends that has printed; what is done here is for
the daemon, while the worker runs and once it is dead. A file that cannot be written costs the
output, never the work.

Whose it is stands beside it in `POOL.N.owner`, for the next daemon, should this one die: the
attempt that the daemon takes for begun, so jobs that end at once are not written down one by one.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

_LAST_LINES = 2000  # bytes
_FLAGS = os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW
_OWNER = struct.Struct("=QQ")  # a job and an execution
_NOBODY = (0, 0)


class LiveOutput:
    """Used by the main loop only."""

    def __init__(self, outputs: str, worker: str) -> None:
        self.path = os.path.join(outputs, "live", worker)
        self._outputs = outputs
        self._owner = _NOBODY
        self._owner_path = f"{self.path}.owner"
        self._owner_file = -1

    def open(self) -> int:
        """What its worker is to print to from the start."""
        flags = _FLAGS | os.O_CREAT | os.O_TRUNC
        try:
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            self._owner_file = os.open(self._owner_path, flags, 0o600)
            return os.open(self.path, flags | os.O_APPEND, 0o600)
        except OSError:
            return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)

    def owned_by(self, job: int, execution: int) -> None:
        """What is printed from now on is of this attempt."""
        self._note((job, execution))

    def disowned_by(self, job: int, execution: int) -> None:
        """It has ended; unless the next one has begun already, nobody's is printed now."""
        if self._owner == (job, execution):
            self._note(_NOBODY)

    def _note(self, owner: tuple[int, int]) -> None:
        self._owner = owner
        try:
            os.pwrite(self._owner_file, _OWNER.pack(*owner), 0)
        except OSError:
            pass  # a full or broken disk, or none at all: it would be lost with the daemon

    def size(self) -> int:
        """Bytes that the job which runs has printed so far."""
        try:
            return os.path.getsize(self.path)
        except OSError:
            return 0

    def is_at(self, inode: int) -> bool:
        """Whether the file that we look at is that one."""
        try:
            return os.stat(self.path).st_ino == inode
        except OSError:
            return False

    def cut(self, limit: int) -> None:
        """Keep no more than that; the worker, which may go on printing, appends to it."""
        try:
            file = os.open(self.path, _FLAGS | os.O_APPEND)
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
            if not os.path.getsize(self.path) or os.path.exists(target):
                return False  # it has its own, given by the worker as its last deed
            os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
            os.rename(self.path, target)
        except OSError:
            return False
        return True

    def remove(self) -> None:
        """With its owner: the worker is gone."""
        if self._owner_file >= 0:
            os.close(self._owner_file)
            self._owner_file = -1
        for path in (self.path, self._owner_path):
            try:
                os.unlink(path)
            except OSError:
                pass  # it is an attempt's by now, or there never was one


def recover(outputs: str, pool: str) -> None:
    """Give the attempts of a daemon that died what the workers of a pool have printed."""
    for path in Path(outputs, "live").glob(f"{pool}.*"):
        # Not of another pool, that is called after this one: `fast.large`.
        if path.name.removeprefix(f"{pool}.").isdecimal():
            left = LiveOutput(outputs, path.name)
            owner = _owner_in(f"{path}.owner")
            if owner != _NOBODY:
                left.keep(*owner)
            left.remove()


def workers_of(outputs: str, job: int, execution: int) -> list[str]:
    """Who ran that attempt when the daemon died, as long as nothing of it is recovered."""
    files = Path(outputs, "live").glob("*.owner")
    return [file.stem for file in files if _owner_in(str(file)) == (job, execution)]


def _owner_in(path: str) -> tuple[int, int]:
    try:
        job, execution = _OWNER.unpack(Path(path).read_bytes())
    except (OSError, struct.error):
        return _NOBODY
    return job, execution
