"""Whether somebody sits at a terminal here, who can use the console."""

from __future__ import annotations

import sys


def has_terminal() -> bool:
    """The console reads keys from stdin and paints on stderr; stdout may be meant for a file."""
    return all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
