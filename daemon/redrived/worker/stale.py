"""Code that was changed on the disk after this process had read it.

A worker keeps the modules it has imported, so it cannot find what was added to their files
since; a fresh one can.
"""

from __future__ import annotations

import os
import time

from .start import BORN


class Stale(LookupError):
    """What is missing may be there for a worker that reads the file now."""


def refuse_stale(file: str | None, missing: Exception) -> None:
    """Raise `Stale` when the file is younger than this process.

    One from the future would be so for every worker; nothing is said of it.
    """
    try:
        changed = os.stat(file or "").st_mtime
    except (OSError, TypeError, ValueError):
        return
    if BORN < changed <= time.time():
        raise Stale(f"{file} was changed after this worker had started: {missing}") from missing
