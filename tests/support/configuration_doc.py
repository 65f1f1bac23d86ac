"""docs/configuration.md, from the structs of the config and the comments of config.toml."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct, inspect

from redrive.config.kinds import mark_name
from redrive.config.marks import MARKS
from redrive.config.sections import ManualRetry, Section, Tables
from redrive.config.values import format_duration, format_size
from support.reference_config import REFERENCE, default_of, mentions

_BEGINNING = """\
# Configuration

Every key of `config.toml`. [config.toml](../config.toml) itself shows them at work, in a file that
runs as it is. `redrive config check` names every mistake by its line, `redrive config show` prints
what a file amounts to, and `redrive reload` gives it to a running daemon.

`NAME` in a header is a name of yours. `${NAME}` and `${NAME:-default}` in any text come from the
environment and are shown nowhere; `$${` is a plain `${`. Relative paths start at the file.
The page is written by `make docs` from the code and the comments of `config.toml`.

| written as | means |
|---|---|
"""
_BANNER = re.compile(r"^# --- (\w+)[:.] (.+?)\.? -+$", re.MULTILINE)
_TITLES = {"retry": "Retries"}  # above whose banner a table stands; else under its own name
_SHORT = {"lasting": 'duration or `"forever"`', "templates": "any values, with templates"}
_NOUNS: dict[type[inspect.Type], str] = {
    inspect.AnyType: "anything",
    inspect.BoolType: "true/false",
    inspect.IntType: "whole number",
    inspect.FloatType: "number",
    inspect.StrType: "text",
    inspect.DateTimeType: "date and time",
}


class _Place(NamedTuple):
    """Where a section of the config is written."""

    header: str
    section: type[Struct]


def rendered() -> str:
    return _BEGINNING + "".join(_values()) + "".join(map(_table, places()))


def _values() -> Iterator[str]:
    for name in ("duration", "size", "rate", "name", "path", "pattern", "condition", "template"):
        yield f"| {name} | {MARKS[name].expected} |\n"


@cache
def places() -> list[_Place]:
    found: list[_Place] = []
    seen: set[type[Struct]] = set()
    for field in fields(Tables):
        found += _below(field.type, field.encode_name, seen)
        if field.encode_name == "retry":
            found.append(_Place("[retry.manual]", ManualRetry))
    return found


def _below(kind: inspect.Type, path: str, seen: set[type[Struct]]) -> Iterator[_Place]:
    """The sections that can stand at `path`, each where it is met first."""
    match kind:
        case inspect.UnionType(types=kinds):
            for each in kinds:
                yield from _below(each, path, seen)
        case inspect.DictType(value_type=inspect.StructType() as item):
            yield from _below(item, f"{path}.NAME", seen)
        case inspect.ListType(item_type=inspect.StructType(cls=section) as item):
            yield _Place(f"[[{path}]]", section)
            seen.add(section)
            yield from _inside(item, path, seen)
        case inspect.StructType(cls=section) if section not in seen:
            yield _Place(f"[{path}]", section)
            seen.add(section)
            yield from _inside(kind, path, seen)
        case _:
            pass


def _inside(kind: inspect.StructType, path: str, seen: set[type[Struct]]) -> Iterator[_Place]:
    for field in sorted(kind.fields, key=lambda field: isinstance(field.type, inspect.ListType)):
        yield from _below(field.type, f"{path}.{field.encode_name}", seen)


def _table(place: _Place) -> str:
    rows = "".join(_row(place.section, field) for field in fields(place.section))
    words = _introduction(place.header)
    said = f"{words[:1].upper()}{words[1:]}.\n\n" if words else ""
    return f"\n## `{place.header}`\n\n{said}| key | type | default | |\n|---|---|---|---|\n{rows}"


def _row(section: type[Struct], field: inspect.Field) -> str:
    text, _, said = _text(section, field).partition("default: ")
    shown = _default(section, field) or said or "none"
    cells = (f"`{field.encode_name}`", _type(field.type), shown, text.rstrip("; "))
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def _text(section: type[Struct], field: inspect.Field) -> str:
    said = comments().get((section, field.name))
    if said is not None:
        return said
    inner = set(_structs(field.type))
    return " ".join(f"see `{header}`" for header, section in places() if section in inner)


def _structs(kind: inspect.Type) -> Iterator[type[Struct]]:
    match kind:
        case inspect.UnionType(types=kinds):
            for each in kinds:
                yield from _structs(each)
        case inspect.ListType(item_type=inspect.StructType(cls=section)):
            yield section
        case inspect.StructType(cls=section):
            yield section
        case _:
            pass


def _introduction(header: str) -> str:
    """What config.toml says beside the header, or above all tables of this kind."""
    names = header.strip("[]").split(".")
    if names[-1] in ("NAME", "errors", "hooks"):
        banners: dict[str, str] = dict(_BANNER.findall(REFERENCE.read_text()))
        return banners[_TITLES.get(names[0], names[0].capitalize())]
    pattern = re.escape(header).replace("NAME", r"[\w-]+")
    found = re.search(rf"^#?{pattern} +# (.+)$", REFERENCE.read_text(), re.MULTILINE)
    return found[1] if found else ""


@cache
def comments() -> dict[tuple[type[Struct], str], str]:
    """The comment beside each key, where it is mentioned with one for the first time."""
    found: dict[tuple[type[Struct], str], str] = {}
    with tempfile.TemporaryDirectory() as folder:
        for each in mentions(Path(folder)):
            # An inline table has one comment, and it is about all of it.
            if each.comment and re.match(rf'#?"?{each.key[-1]}"? = ', each.row):
                found.setdefault((type(each.section), each.name), each.comment)
    return found


def _default(section: type[Struct], field: inspect.Field) -> str:
    value = default_of(section, field.name)
    if field.required:
        return "must be set"
    match value, field.type:
        case Section(), _:
            return "its own"
        case None, inspect.Metadata() as kind if mark_name(kind) == "lasting":
            return '`"forever"`'
        case None, _:
            return ""
        case _:
            pass
    return f"`{_written(field.type, value)}`"


def _written(kind: inspect.Type, value: Any) -> str:
    marks = [mark_name(kind)] if isinstance(kind, inspect.Metadata) else []
    if isinstance(kind, inspect.UnionType):
        marks = [mark_name(each) for each in kind.types if isinstance(each, inspect.Metadata)]
    match marks, value:
        case ["duration" | "lasting"], float():
            return f'"{format_duration(value)}"'
        case ["size"], int():
            return f'"{format_size(value)}"'
        case _, tuple():
            return "[]"
        case _:
            return json.dumps(value)


def _type(kind: inspect.Type) -> str:
    match kind:
        case inspect.Metadata():
            name = mark_name(kind)
            return _SHORT.get(name, name)
        case inspect.UnionType(types=kinds):
            some = (each for each in kinds if not isinstance(each, inspect.NoneType))
            return " or ".join(map(_type, some))
        case inspect.LiteralType():
            return "word"
        case inspect.ListType(item_type=item):
            return f"list of {_plural(_type(item))}"
        case inspect.DictType(value_type=item):
            return f"table of {_plural(_type(item))}"
        case inspect.StructType():
            return "table"
        case _:
            return _NOUNS[type(kind)]


def _plural(noun: str) -> str:
    return noun if noun in ("anything",) or " or " in noun or "," in noun else f"{noun}s"


def fields(section: type[Struct]) -> tuple[inspect.Field, ...]:
    kind = inspect.type_info(section)
    assert isinstance(kind, inspect.StructType)
    return kind.fields
