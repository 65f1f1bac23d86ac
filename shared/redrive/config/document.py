"""A TOML file as values and the lines they stand on; what a config is, it does not know."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from redrive.config.lines import Lines
from redrive.config.problems import ConfigRejected, Problem, dotted
from redrive.config.salvage import blanked
from redrive.config.values import Toml

LARGEST_FILE = 1 << 20

_PLACE = re.compile(r"(.*) \(at (?:line ([0-9]+), column ([0-9]+)|end of document)\)", re.DOTALL)
_HUGE_INTEGER = re.compile(r"[0-9][0-9_]{4000,}")  # Python reads 4300 digits and no more


class Document(NamedTuple):
    values: dict[str, Toml]
    lines: Lines
    broken: tuple[Problem, ...] = ()  # what is wrong with the rest, where only a part was read


def read_document(path: Path) -> Document:
    """The file's values and lines; one that everybody may write is refused."""
    content = _content(path, refuse_shared=True)
    return _parsed(path, _decoded(path, content))


def read_tables(path: Path, tables: Collection[str]) -> Document:
    """Some tables of a file, which may be no TOML elsewhere."""
    content = _content(path, refuse_shared=False)
    try:
        values, lines, _ = _parsed(path, _decoded(path, content))
        return Document({name: values[name] for name in tables if name in values}, lines)
    except ConfigRejected as broken:
        text = blanked(content.decode("utf-8", "replace").replace("\r\n", "\n"), tables)
        if "\ufffd" in text:
            raise
        try:
            return _parsed(path, text)._replace(broken=tuple(broken.problems))
        except ConfigRejected:
            raise broken from None


def _parsed(path: Path, text: str) -> Document:
    lines = Lines(text)
    if lines.too_deep:
        raise _refusal(path, "nested too deeply, expected no more than 64 levels", lines.too_deep)
    try:
        return Document(tomllib.loads(text), lines)
    except ValueError as broken:
        raise _broken(path, text, lines, broken) from None


def _content(path: Path, refuse_shared: bool) -> bytes:
    try:
        with open(path, "rb", opener=_open_without_waiting) as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read(LARGEST_FILE + 1) if stat.S_ISREG(mode) else None
    except (OSError, ValueError) as wrong:  # ValueError: a NUL character in the path
        reason = wrong.strerror if isinstance(wrong, OSError) else wrong
        raise _refusal(path, f"cannot be read: {reason}") from None
    if content is None:
        raise _refusal(path, "cannot be read: it is not a regular file")
    if refuse_shared and mode & stat.S_IWOTH:
        text = f"everybody may write to it (mode {stat.S_IMODE(mode):04o}), expected `chmod o-w`"
        raise _refusal(path, text)
    if len(content) > LARGEST_FILE:
        raise _refusal(path, "the file is larger than 1 MiB, expected a config")
    return content


def _open_without_waiting(path: str, flags: int) -> int:
    """Or a named pipe would keep us until somebody writes to it."""
    return os.open(path, flags | os.O_NONBLOCK)


def _decoded(path: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as wrong:
        line = content.count(b"\n", 0, wrong.start) + 1
        text = f"byte 0x{content[wrong.start]:02x} is not UTF-8, expected UTF-8 text"
        raise _refusal(path, text, line) from None


def _broken(path: Path, text: str, lines: Lines, broken: ValueError) -> ConfigRejected:
    place = _PLACE.fullmatch(str(broken))
    if place is None:  # the one error that tomllib passes on from Python, without a place
        huge = _HUGE_INTEGER.search(text)
        line = text.count("\n", 0, huge.start() if huge else 0) + 1
        return _refusal(path, "a number has too many digits, expected at most 19", line)
    message, row, column = place.groups()
    line = int(row) if row else text.count("\n") + 1
    if lines.twice and lines.twice[0].again <= line:
        key, first, again = lines.twice[0]
        text = f"written again, expected it only once; it is already on line {first}"
        return _refusal(path, text, again, dotted(key))
    at = f"at column {column}" if column else "at the end of the file"
    return _refusal(path, f"not TOML: {message[:1].lower()}{message[1:]} {at}", line)


def _refusal(path: Path, text: str, line: int | None = None, key: str = "") -> ConfigRejected:
    return ConfigRejected([Problem(str(path), line, key, text)])
