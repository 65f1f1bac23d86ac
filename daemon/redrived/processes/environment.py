"""What a command finds in its environment: what it needs, and nothing of the daemon's own.

A shell command gets the job's arguments here and in a file, never inside its text, so no
argument can become code.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

import msgspec

from redrive.models import Json

_INHERITED = ("PATH", "HOME", "LANG", "TZ")
_LONGEST_ARGUMENT = 64 * 1024  # the kernel's limit for one entry is 128 KiB; the file has all


def inherited() -> dict[str, str]:
    """The little of the daemon's environment that its commands share."""
    kept = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return {"PATH": os.defpath, **kept}


def arguments(args: Mapping[str, Json]) -> dict[str, str]:
    """`REDRIVE_ARG_NAME` for every argument that fits into an environment."""
    entries: dict[str, str] = {}
    for name, value in args.items():
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        if "\0" not in text and len(text) <= _LONGEST_ARGUMENT:
            entries["REDRIVE_ARG_" + re.sub(r"[^A-Za-z0-9]", "_", name).upper()] = text
    return entries
