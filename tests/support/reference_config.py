"""config.toml, every line of it switched on: its keys, what they were read into, their comments."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from redrive.config import load
from redrive.config.lines import Key, Lines
from redrive.config.sections import Retry
from redrive.config.written import tables
from redrive.policy import RetryPolicy

REFERENCE = Path(__file__).parents[2] / "config.toml"
_SWITCHED_OFF = re.compile(r"^#(?=[\[\w])", re.MULTILINE)


class Mention(NamedTuple):
    """A key that stands in the file, and the section and value it was read into."""

    key: Key
    section: Struct
    name: str
    value: Any
    row: str  # as it is written, switched off or not

    @property
    def comment(self) -> str:
        return self.row.partition(" # ")[2]


def switched_on(text: str) -> str:
    return _SWITCHED_OFF.sub("", text)


def mentions(folder: Path) -> list[Mention]:
    """All that the file mentions; `folder` takes a copy of it."""
    written = REFERENCE.read_text()
    path = folder / "config.toml"
    path.write_text(switched_on(written))
    lines, rows = Lines(path.read_text()), written.splitlines()
    return [
        Mention(key, section, name, value, rows[lines[key] - 1])
        for key, section, name, value in _walk(
            tomllib.loads(path.read_text()), tables(load(path).config), ()
        )
    ]


def default_of(section: type[Struct], name: str) -> Any:
    """`None` when there is none, or nothing but an example could stand for it."""
    kind = RetryPolicy if section is Retry else section
    field = next(field for field in fields(kind) if field.name == name)
    if field.default_factory is not NODEFAULT:
        return field.default_factory()
    return None if field.default is NODEFAULT else field.default


def _walk(
    written: dict[str, Any], read: Struct | dict[str, Any], key: Key
) -> Iterator[tuple[Key, Struct, str, Any]]:
    for name, item in written.items():
        if isinstance(read, Struct):
            field = next(field for field in fields(read) if field.encode_name == name)
            value = getattr(read, field.name)
            yield (*key, name), read, field.name, value
        else:
            value = read.get(name)
        pairs = (
            enumerate(zip(item, value, strict=True))
            if isinstance(value, list)
            else [(None, (item, value))]
        )
        for place, (one, its) in pairs:
            if isinstance(its, Struct | dict) and isinstance(one, dict):
                yield from _walk(one, its, (*key, name) if place is None else (*key, name, place))
