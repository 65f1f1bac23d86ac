"""Where ipc sockets lie, and who may open them.

A socket file is bound in a folder of its own, given its permissions and then renamed to its
place. So it is never there with the wrong ones, a stale or foreign file goes without a gap,
and the process's umask is left alone. The instance lock is held by whoever calls this.
"""

from __future__ import annotations

import grp
import os
import shutil
import stat
import tempfile
from pathlib import Path

import zmq

from redrive.errors import ConfigProblem


class Place:
    """The path of one ipc socket."""

    def __init__(self, path: Path, group: str | None) -> None:
        self.path = path
        self._group = group
        self._inode: int | None = None

    def bind(self, socket: zmq.Socket[bytes]) -> None:
        stage = Path(tempfile.mkdtemp(prefix=".", dir=self.path.parent))
        try:
            staged = stage / "s"
            _check_length(staged, self.path)
            socket.bind(f"ipc://{staged}")
            _open_to_group(staged, self._group, called=self.path)
            self._inode = staged.stat().st_ino
            staged.rename(self.path)
        finally:
            shutil.rmtree(stage)

    def is_lost(self) -> bool:
        """Whether clients would find something else here, or nothing."""
        try:
            return self.path.lstat().st_ino != self._inode
        except OSError:  # it is gone, or its folder is no longer one that we may look into
            return True

    def remove(self) -> None:
        if self._inode is not None and not self.is_lost():
            self.path.unlink()


def make_private(folder: Path) -> None:
    """The folder of the sockets, closed to everybody until they are all in place."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise ConfigProblem(
            f"{folder} is not a folder of the daemon's own user",
            hint="remove it, or point `[daemon] runtime_dir` elsewhere",
        )
    folder.chmod(0o700)


def open_folder(folder: Path, *, to_others: bool) -> None:
    """Let those through to whom a socket is open; the sockets themselves keep strangers out.

    Nobody may look around. The folder keeps its group: systemd, which sets mode and owner anew
    with every reload, would give all sockets to the group of the unit if it found another here.
    """
    mode = 0o711 if to_others else 0o700
    if stat.S_IMODE(folder.stat().st_mode) != mode:
        folder.chmod(mode)


def _open_to_group(path: Path, group: str | None, *, called: Path) -> None:
    if group is None:
        path.chmod(0o600)
        return
    try:
        number = grp.getgrnam(group).gr_gid
    except KeyError:
        raise ConfigProblem(
            f"there is no group {group!r} on this machine",
            hint=f"`groupadd {group}`, or name another in `[bus]`",
        ) from None
    try:
        os.chown(path, -1, number)
    except PermissionError:
        raise ConfigProblem(
            f"the daemon's user may not open {called} to the group {group!r}",
            hint=_why_not(number),
        ) from None
    path.chmod(0o660)


def _why_not(group: int) -> str:
    """The kernel says the same of a stranger to the group and of a call that is filtered."""
    if group in (os.getegid(), *os.getgroups()):
        return (
            "that user is a member, so something filters its system calls:"
            " add `SystemCallFilter=@chown` to the unit"
        )
    return "make that user a member of the group"


def _check_length(staged: Path, path: Path) -> None:
    excess = len(os.fsencode(staged)) - zmq.IPC_PATH_MAX_LEN
    if excess > 0:
        raise ConfigProblem(
            f"the path of the socket {path} is {excess} bytes too long for the system",
            hint="set `[daemon] runtime_dir` to a shorter one",
        )
