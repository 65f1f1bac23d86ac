"""What each mark in `sections` asks of a value: how it is written and how it is read.

The engines behind patterns, conditions and templates are loaded only by a config that has
any, so that a client's start does not pay for them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from redrive.config import values
from redrive.config.values import Toml, quoted

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Mark(NamedTuple):
    written_as: tuple[type, ...]
    expected: str
    read: Callable[[Any], Any]  # raises ValueError or RedriveError when it cannot


def _lasting(value: object) -> float | None:
    return None if value is False or value == "forever" else values.parse_duration(value)


def _rate(text: str) -> str:
    values.parse_rate(text)
    return text


def _variable(text: str) -> str:
    if not _VARIABLE.fullmatch(text):
        raise ValueError(f"got {quoted(text)}, expected the name of a variable")
    return text


def _path(text: str) -> str:
    if not text:
        raise ValueError('got "", expected a path')
    return os.path.expanduser(text)


def _pattern(text: str) -> str:
    from redrive.patterns import compile_pattern

    compile_pattern(text)
    return text


def _condition(text: str) -> str:
    from redrive.conditions import compile_condition

    compile_condition(text)
    return text


def _template(text: str) -> str:
    from redrive.templates import compile_template, is_template

    if is_template(text):
        compile_template(text)
    return text


def _templates(value: Toml) -> Toml:
    """Checks the texts inside a value that the reader has already found to be JSON."""
    match value:
        case str():
            _template(value)
        case list():
            for item in value:
                _templates(item)
        case dict():
            for item in value.values():
                _templates(item)
        case _:
            pass
    return value


_NUMBER = (int, float, str)
_TEXT = (str,)

MARKS = {
    "duration": Mark(_NUMBER, values.DURATION, values.parse_duration),
    "lasting": Mark((*_NUMBER, bool), f'{values.DURATION}, or "forever"', _lasting),
    "size": Mark((int, str), values.SIZE, values.parse_size),
    "rate": Mark(_TEXT, values.RATE, _rate),
    "name": Mark(_TEXT, values.NAME, values.parse_name),
    "variable": Mark(_TEXT, "the name of a variable", _variable),
    "path": Mark(_TEXT, "a path", _path),
    "pattern": Mark(_TEXT, "a pattern in RE2's syntax", _pattern),
    "condition": Mark(_TEXT, "a Jinja2 expression", _condition),
    "template": Mark(_TEXT, "a Jinja2 template", _template),
    "templates": Mark((object,), "values that JSON can hold", _templates),
}
