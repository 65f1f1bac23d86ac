"""`posix_spawn` of the C library, because Python's keeps everybody else waiting.

`os.posix_spawn` holds the interpreter's lock until the kernel has run the child as far as its
exec: on a busy machine milliseconds, in which the store's writer stands still too. Called by
ctypes it does not, and it can also change the folder, which Python's cannot. Needs glibc 2.29
or musl 1.1.24. Why there is no helper process: docs/decisions/0010-spawning.md.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import weakref
from collections.abc import Mapping, Sequence
from functools import lru_cache

_SETSIGDEF = 0x04
_SETSID = 0x80
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW
_ROOM = 1024  # bytes, for structures of at most 340

_ENCODING = sys.getfilesystemencoding()
_ERRORS = sys.getfilesystemencodeerrors()

_libc = ctypes.CDLL(None)
_libc.posix_spawn.argtypes = (
    ctypes.POINTER(ctypes.c_int),
    ctypes.c_char_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_char_p),
    ctypes.POINTER(ctypes.c_char_p),
)


class _FileActions:
    """What the child does before it becomes the program: its folder and its three files."""

    def __init__(self, cwd: str, out: str, err: str) -> None:
        self.at = ctypes.create_string_buffer(_ROOM)
        _check(_libc.posix_spawn_file_actions_init(self.at))
        weakref.finalize(self, _libc.posix_spawn_file_actions_destroy, self.at)
        folder, *files = _texts([cwd, os.devnull, out, err])
        for descriptor, path in enumerate(files):
            self._add("addopen", descriptor, path, _APPEND if descriptor else os.O_RDONLY, 0)
        self._add("addchdir_np", folder)  # now, for the files are named as the daemon sees them
        if hasattr(_libc, "posix_spawn_file_actions_addclosefrom_np"):  # glibc 2.34
            self._add("addclosefrom_np", 3)  # should anybody's not be close-on-exec

    def _add(self, action: str, *arguments: int | bytes) -> None:
        _check(getattr(_libc, f"posix_spawn_file_actions_{action}")(self.at, *arguments))


def posix_spawn(
    program: str,
    argv: Sequence[str],
    env: Mapping[str, str],
    *,
    cwd: str,
    output: tuple[str, str],
) -> int:
    """The pid of the program, leader of a new session; OSError or ValueError if there is none."""
    if "" in env or "=" in "".join(env):
        raise ValueError("illegal environment variable name")
    entries = [f"{name}={value}" for name, value in env.items()]
    path, *texts = _texts([program, *argv, *entries])
    pid = ctypes.c_int()
    _check(
        _libc.posix_spawn(
            ctypes.byref(pid),
            path,
            _file_actions(cwd, *output).at,
            _attributes(),
            (ctypes.c_char_p * (len(argv) + 1))(*texts[: len(argv)]),
            (ctypes.c_char_p * (len(entries) + 1))(*texts[len(argv) :]),
        )
    )
    return pid.value


# As many as there are files of running commands, most of the time.
_file_actions = lru_cache(maxsize=256)(_FileActions)


@lru_cache(maxsize=1)
def _attributes() -> ctypes.Array[ctypes.c_char]:
    """A session of its own, and the signals as they are for everybody."""
    attributes = ctypes.create_string_buffer(_ROOM)
    signals = ctypes.create_string_buffer(_ROOM)
    _libc.sigemptyset(signals)
    for number in _IGNORED_BY_PYTHON:
        _libc.sigaddset(signals, int(number))
    _check(_libc.posix_spawnattr_init(attributes))
    _check(_libc.posix_spawnattr_setsigdefault(attributes, signals))
    _check(_libc.posix_spawnattr_setflags(attributes, ctypes.c_short(_SETSID | _SETSIGDEF)))
    return attributes


def _texts(texts: Sequence[str]) -> list[bytes]:
    encoded = "\0".join(texts).encode(_ENCODING, _ERRORS).split(b"\0")
    if len(encoded) != len(texts):
        raise ValueError("embedded null byte")
    return encoded


def _check(error: int) -> None:
    if error:
        raise OSError(error, os.strerror(error))
