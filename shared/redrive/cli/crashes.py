"""What is left of a program of ours that broke down: a report, for whoever mends it."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback

from redrive import __version__


def write_report(program: str) -> str:
    """Of the exception that is being handled; only the user can read it: arguments may be secret."""
    handle, path = tempfile.mkstemp(prefix=f"redrive-{program}-", suffix=".txt")
    with os.fdopen(handle, "w") as file:
        file.write(f"redrive {__version__}, Python {sys.version}\n")
        file.write(f"arguments: {sys.argv[1:]}\n\n{traceback.format_exc()}")
    return path
