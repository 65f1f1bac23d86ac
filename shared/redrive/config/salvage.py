"""What can still be read of a file that is no TOML: tables that are whole by themselves.

A daemon goes on with the config it has read, however the file is spoilt after that, and who
wants to stop a job must reach it. A client needs few tables, so all the others are blanked
out; lines keep their numbers. Nothing is guessed: a table in which something is wrong, or one
that seems to be there twice, makes the rest unreadable too.
"""

from __future__ import annotations

import re
from collections.abc import Collection

_HEADER = re.compile(r"[ \t]*\[\[?[ \t]*[\"']?([A-Za-z0-9_-]+)")


def blanked(text: str, tables: Collection[str]) -> str:
    """`text` with nothing in it but what stands before the first header, and these tables."""
    kept: list[str] = []
    is_wanted = True
    for line in text.split("\n"):
        if header := _HEADER.match(line):
            is_wanted = header[1] in tables
        kept.append(line if is_wanted else "")
    return "\n".join(kept)
