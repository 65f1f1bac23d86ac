"""What an attempt prints, in a file of its own, at no cost for silent ones.

File descriptors 1 and 2 point at one live file, whoever writes: print, logging, C code,
children. After an attempt its position tells whether anything was written; if so the file
becomes the attempt's and a fresh one takes its place. A folder that cannot be written to
costs the output, never the job.

A handler may close or redirect what it prints to, and must not spoil that for the next. What
Python prints to cannot be closed and is put back after each job; the descriptors, which cost
a few system calls to look at, are put right whenever the worker has been at it for a moment.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Any, Callable, TextIO

from .descriptors import high_copy
from .page import LIVE

SAID_AT_MOST = 4096  # bytes of what was printed while starting


class Output:
    def __init__(self, live: str, folder: str, page: Any, warn: Callable[[str], None]) -> None:
        self._live = live
        self._folder = folder
        self._page = page
        self._warn = warn
        self._own = high_copy(1)  # the live file, whatever 1 becomes
        self._note(kept=self._is_in_place())
        _line_buffer_c_output()
        self._out, self._err = _text_stream(1), _text_stream(2)
        for name, stream in (("stdout", self._out), ("stderr", self._err)):
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)

    def said_so_far(self) -> str:
        """What was printed while starting, taken out of the live file."""
        self.mend()
        if sys.stdout and sys.stderr:  # what the application has put there for good stays
            self._out, self._err = sys.stdout, sys.stderr
        self._mend_streams()
        size = self._position()
        if not size:
            return ""
        with open(self._live, "rb") as live:
            live.seek(max(0, size - SAID_AT_MOST))
            said = live.read()
        os.ftruncate(self._own, 0)
        os.lseek(self._own, 0, os.SEEK_SET)
        return said.decode("utf-8", "replace")

    def keep(self, job: int, execution: int) -> bool:
        """Whether the attempt that just ended wrote anything; it is then in its own file."""
        self._mend_streams()
        if self._kept and not self._position():
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

    def mend(self) -> None:
        """Let descriptors 1 and 2 lead to the live file again, should a handler have been there.

        Somebody may have moved the file away as well, where nobody sees what is printed.
        """
        if self._kept and not self._is_in_place():
            self._open_live()
        live = os.fstat(self._own)
        for fd in (1, 2):
            try:
                is_intact = os.path.samestat(os.fstat(fd), live)
            except OSError:
                is_intact = False
            if not is_intact:
                os.dup2(self._own, fd)

    def _mend_streams(self) -> None:
        """Nothing printed so far is for the next job, which prints where this one began to."""
        try:
            sys.stdout.flush()
            sys.stderr.flush()
            if sys.stdout is self._out and sys.stderr is self._err:
                return
        except Exception:  # noqa: BLE001, S110
            pass  # closed, or of the handler's own making
        self._out = sys.stdout = _usable(self._out, 1)
        self._err = sys.stderr = _usable(self._err, 2)

    def _position(self) -> int:
        return os.lseek(self._own, 0, os.SEEK_CUR)

    def _open_live(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_TRUNC
        try:
            os.makedirs(os.path.dirname(self._live), mode=0o700, exist_ok=True)
            live = os.open(self._live, flags, 0o600)
            kept = True
        except OSError as error:
            if self._kept:
                self._warn(f"output is not kept until it can be again: {error}")
            live = os.open(os.devnull, os.O_WRONLY)
            kept = False
        os.close(self._own)
        self._own = high_copy(live)
        if live not in (1, 2):  # unless a handler had closed these
            os.close(live)
        os.dup2(self._own, 1)
        os.dup2(self._own, 2)
        self._note(kept)

    def _is_in_place(self) -> bool:
        """Whether the daemon finds what is printed where it looks."""
        try:
            return os.path.samestat(os.stat(self._live), os.fstat(self._own))
        except OSError:
            return False

    def _note(self, kept: bool) -> None:
        """The daemon must know: a job it does not see printing is no silent one."""
        self._kept = kept
        self._page[LIVE] = os.fstat(self._own).st_ino if kept else 0


class _Forgiving(io.FileIO):
    """A full disk loses the words, it does not fail the handler that prints them."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError:
            return len(data)

    def close(self) -> None:
        """The next job prints here, too."""


class _Buffer(io.BufferedWriter):
    def close(self) -> None:
        self.flush()


class _Text(io.TextIOWrapper):
    def close(self) -> None:
        self.flush()


def _text_stream(fd: int) -> TextIO:
    buffer = _Buffer(_Forgiving(fd, "w", closefd=False))
    return _Text(buffer, encoding="utf-8", errors="backslashreplace", line_buffering=True)


def _usable(stream: TextIO, fd: int) -> TextIO:
    try:
        stream.flush()
    except Exception:  # noqa: BLE001 - what it is made of was taken away
        return _text_stream(fd)
    return stream


def _line_buffer_c_output() -> None:
    """C code writes to a file in large blocks, which would end up with a later attempt."""
    try:
        import ctypes

        libc = ctypes.CDLL(None)
        libc.setvbuf(ctypes.c_void_p.in_dll(libc, "stdout"), None, 1, 0)  # _IOLBF
    except (ImportError, OSError, ValueError, AttributeError):
        pass  # no ctypes, or another C library: what C code prints may come late
