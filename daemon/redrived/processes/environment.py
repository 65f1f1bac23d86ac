"""What a command finds in its environment: what it needs, and nothing of the daemon's own.

A shell command gets the job's arguments here and in a file, never inside its text, so no
argument can become code.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

import msgspec

from redrive.errors import RedriveError
from redrive.models import Json

_INHERITED = ("PATH", "HOME", "LANG", "TZ")
_LONGEST_ARGUMENT = 64 * 1024  # the kernel's limit for one entry is 128 KiB; the file has all


class UnfitArguments(RedriveError):
    """A command would not find its arguments as they are."""

    code = "unfit_arguments"


def inherited() -> dict[str, str]:
    """The little of the daemon's environment that its commands share."""
    kept = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return {"PATH": os.defpath, **kept}


def arguments(args: Mapping[str, Json]) -> dict[str, str]:
    """`REDRIVE_ARG_NAME` for every argument; those that are too long are in the file only."""
    entries: dict[str, str] = {}
    names: dict[str, str] = {}  # by variable
    for name, value in args.items():
        variable = "REDRIVE_ARG_" + re.sub(r"[^A-Za-z0-9]", "_", name).upper()
        other = names.setdefault(variable, name)
        if other != name:
            raise UnfitArguments(
                f"arguments {other!r} and {name!r} would both be ${variable}",
                hint="give them names that differ by more than case and punctuation",
            )
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        if "\0" in text:
            raise UnfitArguments(
                f"argument {name!r} holds a NUL character, which no variable can",
                hint="encode it, as base64 say",
            )
        if len(text) <= _LONGEST_ARGUMENT:
            entries[variable] = text
    return entries


def check_words(words: Sequence[str]) -> None:
    """A program and its arguments; the kernel takes a NUL character for the end of a word."""
    for place, word in enumerate(words):
        if "\0" in word:
            raise UnfitArguments(
                f"word {place} of the command holds a NUL character, which no argument can",
                hint="encode it, as base64 say",
            )
