"""Starting a program: found as a shell would, refused in words, held to its limits.

Limits are set, and a cgroup is entered, by a shell that becomes the program, so not one
instruction of it runs without them.
"""

from __future__ import annotations

import errno
import math
import os
import re
import shlex
import shutil
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from redrive.config.sections import Limits
from redrive.errors import TryLater
from redrived.processes.posix_spawn import posix_spawn

_NO_ROOM = {errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE}
MORE_FILES = "raise LimitNOFILE of the service, or lower [daemon] concurrency"
_HINTS = {
    errno.EAGAIN: "raise TasksMax of the service, or lower [daemon] concurrency",
    errno.ENOMEM: "the machine has no memory left: lower [daemon] concurrency",
    errno.EMFILE: MORE_FILES,
    errno.ENFILE: "the machine has too many files open: raise fs.file-max, or find who has them",
    errno.ENOSPC: "its user has no more watches: raise fs.epoll.max_user_watches",
}

_FIRST_LINE = 256  # bytes of a file in which the kernel looks for its interpreter

# Where programs were found, by name, PATH and folder; one that has moved is looked for again.
_found: dict[tuple[str, str, str], str] = {}


class NoRoom(TryLater):
    """The machine or the daemon has no processes, memory or descriptors left for a command."""

    code = "no_room"


class Unprepared(TryLater):
    """What one command needs cannot be made ready now: its files, or its socket."""

    code = "unprepared"


class CannotRun(Exception):
    """There is no such program or folder, or it may not be used; with a shell's exit code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def spawn(argv: list[str], *, cwd: str, env: Mapping[str, str], output: tuple[str, str]) -> int:
    """The pid of the program, leader of a new session, its output appended to two files.

    The program opens them by itself, so the kernel can tell whether it still has them open.
    """
    try:
        return _spawn(argv, cwd, env, output)
    except FileNotFoundError as error:
        raise _not_found(argv[0], cwd, env["PATH"]) from error
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise no_room(error) from error
        raise CannotRun(126, f"cannot run {argv[0]} in {cwd}: {error.strerror}") from error
    except ValueError as error:
        raise CannotRun(126, f"cannot run {argv[0]!r}: an argument is no text: {error}") from error


def check_found(name: str, *, cwd: str, env: Mapping[str, str]) -> None:
    """Refuse a program that is nowhere in our words, before a shell does it in its own."""
    try:
        _find(name, env["PATH"], cwd)
    except FileNotFoundError as error:
        raise _not_found(name, cwd, env["PATH"]) from error


def handle_of(pid: int) -> int:
    """A pidfd of a program just started, or it is ended."""
    try:
        return os.pidfd_open(pid)
    except OSError as error:
        end_at_once(pid)
        raise no_room(error) from error


def end_at_once(pid: int) -> None:
    """End a program just started, whose exit nobody would see."""
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def limited(argv: list[str], limits: Limits, door: Path | None = None) -> list[str]:
    """The command behind its limits, in its cgroup; itself when there is neither.

    A cgroup that lets nobody in is done without, like one that cannot be made.
    """
    lines: list[str] = []
    if door is not None:
        lines.append(f"{{ echo $$ > {shlex.quote(str(door))}; }} 2>/dev/null")
    settings = {
        "-v": limits.memory and limits.memory // 1024,
        "-n": limits.open_files,
        "-f": limits.file_size and limits.file_size // 512,
    }
    lines += [f"ulimit {flag} {value} || exit 126" for flag, value in settings.items() if value]
    if limits.cpu:  # first SIGXCPU, which says why, and SIGKILL for who ignores it
        seconds = math.ceil(limits.cpu)
        lines.append(f"ulimit -S -t {seconds} && ulimit -H -t {seconds + 5} || exit 126")
    if limits.processes:  # the flag is -u in bash, -p in dash
        count = limits.processes
        lines.append(f"ulimit -u {count} 2>/dev/null || ulimit -p {count} || exit 126")
    nice = f"nice -n {limits.nice} " if limits.nice else ""
    if not lines and not nice:
        return argv
    return ["/bin/sh", "-c", "\n".join([*lines, f'exec {nice}"$@"']), "limits", *argv]


def no_room(error: OSError) -> NoRoom:
    return NoRoom(
        f"cannot start a command now: {error.strerror or error}",
        hint=_HINTS.get(error.errno or 0, "`redrive doctor` looks at its folders and limits"),
    )


def unprepared(error: OSError) -> TryLater:
    """Why a command cannot be made ready: the machine has no room for any, or not for this one."""
    if error.errno in _NO_ROOM:
        return no_room(error)
    return Unprepared(
        f"cannot make it ready now: {error}",
        hint="make room in [daemon] runtime_dir, and let its path be short and writable",
    )


def _spawn(argv: list[str], cwd: str, env: Mapping[str, str], output: tuple[str, str]) -> int:
    key = (argv[0], env["PATH"], cwd)
    program = _found.get(key) or _find(*key)
    try:
        pid = posix_spawn(program, argv, env, cwd=cwd, output=output)
    except FileNotFoundError:
        if _found.pop(key, None) is None:
            raise
        return _spawn(argv, cwd, env, output)
    if program is not argv[0]:  # else there was nothing to look for, and names may be many
        _found[key] = program
    return pid


def _find(name: str, path: str, cwd: str) -> str:
    """Where the program is, for somebody who is in that folder."""
    if "/" in name:
        return name
    folders = os.pathsep.join(os.path.join(cwd, folder) for folder in path.split(os.pathsep))
    found = shutil.which(name, path=folders)
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    return found


def _not_found(name: str, cwd: str, path: str) -> CannotRun:
    """The kernel says the same of a program, its folder and its interpreter: which is missing?"""
    if not os.path.isdir(cwd):
        return CannotRun(126, f"cannot run {name}: there is no folder {cwd}")
    with suppress(OSError):
        program = os.path.join(cwd, _find(name, path, cwd))
        with open(program, "rb") as file:
            missing = _interpreter(file.read(_FIRST_LINE))
        return CannotRun(126, f"cannot run {name}: {missing} is not there")
    return CannotRun(127, f"cannot run {name}: there is no such program that can be executed")


def _interpreter(beginning: bytes) -> str:
    """What a file that was found wants to be run by, from its first bytes."""
    if not beginning.startswith(b"#!"):
        return "the file is, but the loader that it names"
    line = beginning[2:].partition(b"\n")[0].decode(errors="replace").lstrip(" \t")
    name = re.split("[ \t]", line)[0]
    return f"its interpreter {name!r}"  # so that a \r at its end is seen
