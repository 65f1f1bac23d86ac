"""The standard streams: closed, full, without a reader, or unable to say what is to be said."""

from __future__ import annotations

import errno
import os
import sys
from typing import Any

from redrive.errors import RedriveError

_CANNOT_BE_WRITTEN = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}


def open_missing() -> None:
    """Put /dev/null where a stream is closed, before a socket gets its number."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115 for as long as we live
    if sys.stdout is None:
        raise RedriveError(
            "standard output is closed; nothing was done",
            hint="`> /dev/null` does without what would be printed",
        )
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def bear_any_text() -> None:
    """Print `?` for what the encoding of the locale does not have; standard error escapes it."""
    stdout: Any = sys.stdout
    if stdout is not None and stdout.errors == "strict":
        stdout.reconfigure(errors="replace")


def what_failed(error: OSError) -> RedriveError | None:
    """What the system refused, where it is no defect of ours."""
    if error.filename is not None:
        return RedriveError(f"{error.filename}: {error.strerror}")
    if error.errno in _CANNOT_BE_WRITTEN:
        give_up_output()
        return RedriveError(
            f"the output could not be written: {error.strerror}",
            hint="if it was to change something, look before you ask again: it may be done",
        )
    return None


def give_up_output() -> None:
    """What is left in the buffer would fail once more at the very end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
