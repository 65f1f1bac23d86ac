"""Running the console where there is a terminal, and refusing where there is none."""

from __future__ import annotations

import sys

from redrive.errors import UsageProblem
from redrive_tui.app import Console


def run(console: Console, *, mouse: bool = True) -> int:
    """Until the operator leaves; the exit code.

    Without a terminal Textual would still write escape codes, and wait for ever for a key.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageProblem(
            "the console needs a terminal", hint="`redrive status` prints the same as text"
        )
    console.run(mouse=mouse)
    return console.return_code or 0
