"""One daemon per state folder, and per folder of sockets: a lock taken before anything else."""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from pathlib import Path

from redrive.errors import AlreadyRunning, ConfigProblem, TryLater


class InstanceLock:
    """Held by an open file, so it goes with the process however that ends."""

    def __init__(self, folder: Path, key: str = "state_dir") -> None:
        self.path = folder / "redrived.lock"
        self._key = key  # of [daemon], which names the folder
        self._file: int | None = None

    def take(self) -> None:
        file = self._open()
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(file, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(file)
            raise AlreadyRunning(
                f"another redrived (pid {holder}) holds {self.path.parent}",
                hint=f"`redrive status` talks to it; a second one needs a {self._key} of its own",
            ) from None
        with suppress(OSError):  # on a full disk a second daemon is not told our pid
            os.ftruncate(file, 0)
            os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        self._file = file

    @property
    def number(self) -> str:
        """Of its file: nobody else holds one with it, and the next daemon there finds it again."""
        assert self._file is not None
        facts = os.fstat(self._file)
        return f"{facts.st_dev:x}-{facts.st_ino:x}"

    def _open(self) -> int:
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise TryLater(
                    f"there is no room in {self.path.parent}", hint="make some on its disk"
                ) from None
            raise ConfigProblem(
                f"{self.path.parent} cannot be used as a folder: {error.strerror}",
                hint="look at its rights, or let `[daemon]` name another `state_dir` or"
                " `runtime_dir`",
            ) from None

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
