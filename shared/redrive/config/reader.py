"""From what TOML holds to the structs of `sections`: every value checked, every mistake noted.

The structs say what is allowed; this walks them beside the values. It goes on after a
mistake, with a stand-in, so that one reading names them all; what it hands back after any
mistake is for further checks only, never for use. Whether names refer to something and
whether keys go together is the business of `checks`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct, inspect

from redrive.config import kinds
from redrive.config.lines import Key
from redrive.config.marks import MARKS
from redrive.config.problems import Problems, instead
from redrive.config.values import Toml, quoted
from redrive.errors import RedriveError

_Section = TypeVar("_Section", bound=Struct)
_WRONG: Any = object()


class Reader:
    """Reads one file's values into structs."""

    def __init__(self, folder: Path, masked: Mapping[Key, str], problems: Problems) -> None:
        self._folder = folder
        self._masked = masked  # the texts that came from the environment
        self._problems = problems

    def section(self, kind: type[_Section], value: Toml, key: Key = ()) -> _Section:
        """`value` as a `kind`; an empty one in its place when it is not even a table."""
        read = self._read(_info_of(kind), value, key)
        section: _Section = kind() if read is _WRONG else read
        return section

    def _read(self, kind: inspect.Type, value: Toml, key: Key) -> Any:
        if isinstance(value, str) and self._problems.inside(key):
            return _WRONG  # its variable has no value
        try:
            return self._value(kind, value, key)
        except (ValueError, RedriveError) as wrong:
            text = str(wrong)
            if key in self._masked:  # the refusal may quote what must not be shown
                text = f"got {quoted(self._masked[key])}, expected {kinds.expected(kind)}"
            self._problems.add(key, text)
            return _WRONG

    def _value(self, kind: inspect.Type, value: Toml, key: Key) -> Any:
        if isinstance(value, str) and key in self._masked and not kinds.fits(kind, value):
            value = _typed(value)
        if not kinds.fits(kind, value):
            raise ValueError(f"got {quoted(value)}, expected {kinds.expected(kind)}")
        match kind, value:
            case inspect.UnionType(types=some), _:
                fitting = next(each for each in some if kinds.fits(each, value))
                return self._value(fitting, value, key)
            case inspect.Metadata(), _:
                return self._marked(kind, value)
            case inspect.StructType(), dict():
                return self._struct(kind, value, key)
            case inspect.DictType(), dict():
                return self._dict(kind, value, key)
            case inspect.ListType(item_type=item), list():
                read = [self._read(item, each, (*key, at)) for at, each in enumerate(value)]
                # Up to the first mistake, so that what is left keeps its place in the file.
                return list(takewhile(lambda each: each is not _WRONG, read))
            case inspect.LiteralType(values=known), str() if value not in known:
                raise ValueError(f"got {quoted(value)}, {instead(value, [*map(str, known)])}")
            case _:
                kinds.check(kind, value)
                return value

    def _marked(self, kind: inspect.Metadata, value: Toml) -> Any:
        inner = kind.type
        if isinstance(inner, inspect.StrType | inspect.AnyType):
            kinds.check(inner, value)
        mark = kinds.mark_of(kind)
        read = mark.read(value)
        if isinstance(inner, inspect.FloatType) and inner.gt is not None and read <= inner.gt:
            raise ValueError(f"got {quoted(value)}, expected a duration above zero")
        return os.path.normpath(self._folder / read) if mark is MARKS["path"] else read

    def _struct(self, kind: inspect.StructType, table: dict[str, Toml], key: Key) -> Struct:
        fields = {field.encode_name: field for field in kind.fields}
        for name in table:
            if name not in fields:
                self._problems.add((*key, name), f"unknown key, {instead(name, fields)}")
        read: dict[str, Any] = {}
        for name, field in fields.items():
            if name in table:
                value = self._read(field.type, table[name], (*key, name))
                if value is not _WRONG:
                    read[field.name] = value
            elif field.required:
                text = f"{quoted(name)} is missing, expected {kinds.expected(field.type)}"
                self._problems.add(key, text)
            if field.required:
                read.setdefault(field.name, None)
        section: Struct = kind.cls(**read)
        return section

    def _dict(self, kind: inspect.DictType, table: dict[str, Toml], key: Key) -> dict[str, Any]:
        read: dict[str, Any] = {}
        for name, item in table.items():
            inside = (*key, name)
            known = self._read(kind.key_type, name, inside)
            value = self._read(kind.value_type, item, inside)
            if known is not _WRONG and value is not _WRONG:
                read[name] = value
        return read


@cache
def _info_of(kind: type[Struct]) -> inspect.Type:
    """Found once: it takes longer than reading a table, and a playbook may have thousands."""
    return inspect.type_info(kind)


def _typed(text: str) -> Toml:
    """The environment holds nothing but text; `"8"` may be meant as a number."""
    value: object = json.loads(text)
    return value if isinstance(value, bool | int | float) else text
