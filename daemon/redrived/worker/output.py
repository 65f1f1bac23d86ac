"""What an attempt prints, in a file of its own, at no cost for silent ones.

File descriptors 1 and 2 point at one live file, whoever writes: print, logging, C code,
children. After an attempt its position tells whether anything was written; if so the file
becomes the attempt's and a fresh one takes its place. A folder that cannot be written to
costs the output, never the job.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Any, Callable

SAID_AT_MOST = 4096  # bytes of what was printed while starting


class Output:
    def __init__(self, live: str, folder: str, warn: Callable[[str], None]) -> None:
        self._live = live
        self._folder = folder
        self._warn = warn
        self._kept = os.path.exists(live)
        _line_buffer_c_output()
        for fd, names in ((1, ("stdout", "__stdout__")), (2, ("stderr", "__stderr__"))):
            stream = _text_stream(fd)
            for name in names:
                setattr(sys, name, stream)

    def said_so_far(self) -> str:
        """What was printed while starting, taken out of the live file."""
        _flush()
        size = _position()
        if not size:
            return ""
        with open(self._live, "rb") as live:
            live.seek(max(0, size - SAID_AT_MOST))
            said = live.read()
        os.ftruncate(1, 0)
        os.lseek(1, 0, os.SEEK_SET)
        return said.decode("utf-8", "replace")

    def keep(self, job: int, execution: int) -> bool:
        """Whether the attempt that just ended wrote anything; it is then in its own file."""
        _flush()
        if self._kept and not _position():
            return False
        folder = os.path.join(self._folder, str(job // 1000))
        try:
            if self._kept:
                os.makedirs(folder, mode=0o700, exist_ok=True)
                os.rename(self._live, os.path.join(folder, f"{job}.{execution}.out"))
            return self._kept
        except OSError as error:
            self._warn(f"the output of job {job} is lost: {error}")
            return False
        finally:
            self._open_live()

    def _open_live(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_TRUNC
        try:
            os.makedirs(os.path.dirname(self._live), mode=0o700, exist_ok=True)
            live = os.open(self._live, flags, 0o600)
            self._kept = True
        except OSError as error:
            if self._kept:
                self._warn(f"output is not kept until it can be again: {error}")
            live = os.open(os.devnull, os.O_WRONLY)
            self._kept = False
        os.dup2(live, 1)
        os.dup2(live, 2)
        if live > 2:
            os.close(live)


class _Forgiving(io.FileIO):
    """A full disk loses the words, it does not fail the handler that prints them."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError:
            return len(data)


def _text_stream(fd: int) -> io.TextIOWrapper:
    raw = _Forgiving(fd, "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding="utf-8", errors="backslashreplace", line_buffering=True
    )


def _flush() -> None:
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except Exception:  # noqa: BLE001, S110
        pass  # the handler has put something of its own there, or closed it


def _position() -> int:
    try:
        return os.lseek(1, 0, os.SEEK_CUR)
    except OSError:
        return 1  # closed, or no file any more: to be opened again


def _line_buffer_c_output() -> None:
    """C code writes to a file in large blocks, which would end up with a later attempt."""
    try:
        import ctypes

        libc = ctypes.CDLL(None)
        libc.setvbuf(ctypes.c_void_p.in_dll(libc, "stdout"), None, 1, 0)  # _IOLBF
    except (ImportError, OSError, ValueError, AttributeError):
        pass  # no ctypes, or another C library: what C code prints may come late
