"""A TOML file as values and the lines they stand on; what a config is, it does not know."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from pathlib import Path
from typing import NamedTuple

from redrive.config.lines import Lines
from redrive.config.problems import ConfigRejected, Problem, dotted
from redrive.config.values import Toml

LARGEST_FILE = 1 << 20

_PLACE = re.compile(r"(.*) \(at (?:line ([0-9]+), column ([0-9]+)|end of document)\)", re.DOTALL)
_HUGE_INTEGER = re.compile(r"[0-9][0-9_]{4000,}")  # Python reads 4300 digits and no more


class Document(NamedTuple):
    values: dict[str, Toml]
    lines: Lines


def read_document(path: Path, *, refuse_shared: bool) -> Document:
    """The file's values and lines; `refuse_shared` refuses one that everybody may write."""
    text = _text(path, refuse_shared)
    lines = Lines(text)
    if lines.too_deep:
        deep = "nested too deeply, expected no more than 64 levels"
        raise ConfigRejected([Problem(str(path), lines.too_deep, "", deep)])
    try:
        return Document(tomllib.loads(text), lines)
    except ValueError as broken:
        raise ConfigRejected([_problem(path, text, lines, broken)]) from None


def _text(path: Path, refuse_shared: bool) -> str:
    content = b""
    try:
        # Opened without waiting: a named pipe would keep us here until somebody writes to it.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if refuse_shared and mode & stat.S_IWOTH:
                text = f"everybody may write to it (mode {mode:04o}), expected `chmod o-w {path}`"
                raise ConfigRejected([Problem(str(path), None, "", text)])
            content = file.read(LARGEST_FILE + 1) or b""
        if len(content) > LARGEST_FILE:
            text = "the file is larger than 1 MiB, expected a config"
            raise ConfigRejected([Problem(str(path), None, "", text)])
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as wrong:
        line = content.count(b"\n", 0, wrong.start) + 1
        text = f"byte 0x{content[wrong.start]:02x} is not UTF-8, expected UTF-8 text"
    except (OSError, ValueError) as wrong:
        line = None
        text = f"cannot be read: {wrong.strerror if isinstance(wrong, OSError) else wrong}"
    raise ConfigRejected([Problem(str(path), line, "", text)])


def _problem(path: Path, text: str, lines: Lines, broken: ValueError) -> Problem:
    place = _PLACE.fullmatch(str(broken))
    if place is None:
        huge = _HUGE_INTEGER.search(text)
        line = text.count("\n", 0, huge.start() if huge else 0) + 1
        return Problem(str(path), line, "", "a number has too many digits, expected at most 19")
    message, row, column = place.groups()
    line = int(row) if row else text.count("\n") + 1
    if lines.twice and lines.twice[0].again <= line:
        key, first, again = lines.twice[0]
        text = f"written again, expected it only once; it is already on line {first}"
        return Problem(str(path), again, dotted(key), text)
    at = f" at column {column}" if column else " at the end of the file"
    return Problem(str(path), line, "", f"not TOML: {message[:1].lower()}{message[1:]}{at}")
