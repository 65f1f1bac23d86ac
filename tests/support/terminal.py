"""A command in a terminal of its own, as wide as a test wants it."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence


def in_terminal(
    script: str,
    arguments: Sequence[str],
    *,
    environ: Mapping[str, str],
    columns: int = 80,
    typed: bytes = b"",
) -> tuple[int, str]:
    """The exit code of a Python script, and everything it wrote to the terminal."""
    # The test runner may say in its environment how wide its own terminal is.
    inherited = {name: v for name, v in os.environ.items() if name not in ("COLUMNS", "LINES")}
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**inherited, "TERM": "xterm", **environ},
    ) as process:
        os.close(theirs)
        os.write(ours, typed)
        written = b""
        try:
            while chunk := os.read(ours, 65536):
                written += chunk
        except OSError:
            pass  # the other side is closed
    os.close(ours)
    return process.returncode, written.decode()
