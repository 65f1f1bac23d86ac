"""What a struct's type accepts, and how to say so to the person who wrote something else."""

from __future__ import annotations

import math
from datetime import datetime
from typing import cast

from msgspec import inspect

from redrive.config.marks import MARKS, Mark
from redrive.config.problems import one_of
from redrive.config.values import Toml, quoted

_WRITTEN_AS: dict[type[inspect.Type], tuple[type, ...]] = {
    inspect.AnyType: (object,),
    inspect.BoolType: (bool,),
    inspect.IntType: (int,),
    inspect.FloatType: (int, float),
    inspect.StrType: (str,),
    inspect.LiteralType: (str,),
    inspect.DateTimeType: (datetime,),
    inspect.ListType: (list,),
    inspect.DictType: (dict,),
    inspect.StructType: (dict,),
    inspect.NoneType: (),
}
_NOUNS: dict[type[inspect.Type], str] = {
    inspect.BoolType: "true or false",
    inspect.IntType: "a whole number",
    inspect.FloatType: "a number",
    inspect.StrType: "a text",
    inspect.DateTimeType: "a date with its time, such as 2026-12-01T00:00:00Z, from 1970 to 2199",
    inspect.DictType: "a table",
    inspect.StructType: "a table",
}
_LARGEST_INTEGER = (1 << 31) - 1  # what every database takes for one
_LARGEST_IN_JSON = (1 << 63) - 1
_YEARS = range(1970, 2200)


def mark_name(kind: inspect.Metadata) -> str:
    extra = cast(dict[str, str], kind.extra)  # pyright: ignore[reportUnknownMemberType]
    return extra["as"]


def mark_of(kind: inspect.Metadata) -> Mark:
    return MARKS[mark_name(kind)]


def fits(kind: inspect.Type, value: Toml) -> bool:
    """Whether `value` is written as a `kind` is; it may still be refused."""
    match kind:
        case inspect.UnionType(types=kinds):
            return any(fits(each, value) for each in kinds)
        case inspect.Metadata():
            written_as = mark_of(kind).written_as
        case _:
            written_as = _WRITTEN_AS[type(kind)]
    return type(value) in written_as or object in written_as


def expected(kind: inspect.Type) -> str:
    """The words after `expected` when a value is not of this kind."""
    match kind:
        case inspect.UnionType(types=kinds):
            some = (each for each in kinds if not isinstance(each, inspect.NoneType))
            return ", or ".join(expected(each) for each in some)
        case inspect.Metadata():
            return mark_of(kind).expected
        case inspect.LiteralType(values=known):
            return one_of(map(str, known))
        case inspect.ListType(item_type=item):
            return f"a list, each item {expected(item)}"
        case inspect.IntType() | inspect.FloatType():
            return _NOUNS[type(kind)] + _bounds(kind)
        case _:
            return _NOUNS[type(kind)]


def check(kind: inspect.Type, value: Toml) -> None:
    """Refuse a plain value that its kind does not allow."""
    match kind:
        case inspect.AnyType():
            check_json(value)
        case inspect.StrType():
            _check_text(str(value))
        case inspect.IntType() | inspect.FloatType() if isinstance(value, int | float):
            _check_number(kind, value)
        case inspect.DateTimeType() if isinstance(value, datetime) and value.year not in _YEARS:
            raise ValueError(f"got {quoted(value)}, expected {expected(kind)}")
        case _:
            pass


def check_json(value: Toml) -> None:
    """Refuse what cannot travel as JSON."""
    match value:
        case str():
            _check_text(value)
        case list():
            for item in value:
                check_json(item)
        case dict():
            for name, item in value.items():
                _check_text(name)
                check_json(item)
        case int() if abs(value) <= _LARGEST_IN_JSON:
            pass
        case float() if math.isfinite(value):
            pass
        case _:
            raise ValueError(f"got {quoted(value)}, expected values that JSON can hold")


def _check_text(text: str) -> None:
    if "\0" in text:
        raise ValueError(f"got {quoted(text)}, expected no NUL character")


def _check_number(kind: inspect.IntType | inspect.FloatType, number: float) -> None:
    if number > _LARGEST_INTEGER:
        raise ValueError(f"got {quoted(number)}, expected at most {_LARGEST_INTEGER}")
    least = -_LARGEST_INTEGER if kind.ge is None else kind.ge
    above = -math.inf if kind.gt is None else kind.gt
    most = _LARGEST_INTEGER if kind.le is None else kind.le
    if not (least <= number <= most and above < number):  # NaN is never inside
        raise ValueError(f"got {quoted(number)}, expected {expected(kind)}")


def _bounds(kind: inspect.IntType | inspect.FloatType) -> str:
    least = f"at least {kind.ge}" if kind.ge is not None else ""
    above = f"above {kind.gt}" if kind.gt is not None else ""
    most = f"at most {kind.le}" if kind.le is not None else ""
    return "".join(f", {bound}" for bound in (least, above, most) if bound)
