"""Starting a program without a fork of ours, a thread or a pipe.

`posix_spawn` is used where it can do all that is asked, and `subprocess.Popen` (a vfork
inside) where the command wants another working directory: it costs a seventh more. Limits
are set by a shell that becomes the program, so not one instruction of it runs without them.
"""

from __future__ import annotations

import errno
import math
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping

from redrive.config.sections import Limits
from redrive.errors import TryLater

_NO_ROOM = {errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE}
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)

# Where programs were found, by name and PATH; one that has moved is looked for again.
_found: dict[tuple[str, str], str] = {}


class NoRoom(TryLater):
    """The machine or the daemon has no processes, memory or descriptors left for a command."""

    code = "no_room"


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
        if _is_here(cwd):
            return _posix_spawn(argv, env, output)
        return _popen(argv, cwd, env, output)
    except FileNotFoundError as error:
        raise CannotRun(127, _not_found(argv[0], cwd, error)) from error
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise no_room(error) from error
        raise CannotRun(126, f"cannot run {argv[0]} in {cwd}: {error.strerror}") from error
    except ValueError as error:
        raise CannotRun(126, f"cannot run {argv[0]!r}: an argument is no text: {error}") from error


def limited(argv: list[str], limits: Limits) -> list[str]:
    """The command behind its limits; itself when there are none."""
    settings = {
        "-v": limits.memory and limits.memory // 1024,
        "-n": limits.open_files,
        "-f": limits.file_size and limits.file_size // 512,
    }
    lines = [f"ulimit {flag} {value} || exit 126" for flag, value in settings.items() if value]
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
        f"cannot start a command now: {error.strerror}",
        hint="lower [daemon] concurrency, or raise the limits of the service",
    )


def _is_here(cwd: str) -> bool:
    try:
        return cwd == os.getcwd()
    except FileNotFoundError:
        return False  # the daemon's own folder has been removed


def _posix_spawn(argv: list[str], env: Mapping[str, str], output: tuple[str, str]) -> int:
    key = (argv[0], env["PATH"])
    program = _found.get(key) or _find(*key)
    try:
        pid = os.posix_spawn(
            program,
            argv,
            env,
            file_actions=(
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, output[0], _APPEND, 0),
                (os.POSIX_SPAWN_OPEN, 2, output[1], _APPEND, 0),
            ),
            setsid=True,
            setsigdef=_IGNORED_BY_PYTHON,
        )
    except FileNotFoundError:
        if _found.pop(key, None) is None:
            raise
        return _posix_spawn(argv, env, output)
    _found[key] = program
    return pid


def _find(name: str, path: str) -> str:
    found = name if "/" in name else shutil.which(name, path=path)
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    return found


def _popen(argv: list[str], cwd: str, env: Mapping[str, str], output: tuple[str, str]) -> int:
    with open(output[0], "ab", opener=_opener) as out, open(output[1], "ab", opener=_opener) as err:
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
    # Whoever asked reaps it by pid; the object must not, and must not complain either.
    process.returncode = 0
    return process.pid


def _opener(path: str, _: int) -> int:
    return os.open(path, _APPEND)


def _not_found(program: str, cwd: str, error: FileNotFoundError) -> str:
    if error.filename == cwd:
        return f"cannot run {program}: there is no folder {cwd}"
    return f"cannot run {program}: there is no such program that can be executed"
