"""Rows of the lists that are not of jobs: what may be asked of them, and whether one fits.

They are asked by the keys that JSON shows of them, and for what it shows; those that say when
they were made also by their age.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import NoneType, UnionType
from typing import Any, cast, get_args, get_origin, get_type_hints

from msgspec import Struct

from redrive.clock import SECOND
from redrive.filters.matching import COMPARISONS, fits, fold, json_text, lets_through
from redrive.filters.terms import Compare, Equal, Filter, Kind, Match, Term, Text, Vocabulary
from redrive.models import plain

_TRUTH = ("true", "false")
_NUMBERS = frozenset({int, float})


def vocabulary(kind: type[Struct], noun: str, name: str) -> Vocabulary:
    """What may be asked of such a row; the noun is another word for the field that names it."""
    types = get_type_hints(kind, include_extras=True)
    keys = {key: _kind(type) for key, type in types.items() if key in kind.__struct_fields__}
    words = {key: _TRUTH for key, what in keys.items() if what is Kind.WORD}
    ages = {"age": Kind.SPAN} if "created_at" in keys else {}
    return Vocabulary(keys={**keys, **ages, noun: keys[name]}, words=words)


def row_matches(filter: Filter, row: Struct, name: str, now: int) -> bool:
    """Whether the filter lets a row through at the instant `now`; words are looked for in `name`."""
    asked = _Row(row, name, now)
    return lets_through(filter, asked.holds)


class _Row:
    def __init__(self, row: Struct, name: str, now: int) -> None:
        self._row = row
        self._shown = plain(row)
        self._name = name
        self._now = now

    def holds(self, term: Term) -> bool:
        match term:
            case Text(glob=glob):
                anywhere = ("", *map(fold, glob), "")
                return any(fits(anywhere, fold(text)) for text in self._texts(self._name))
            case Match(key=key, words=words):
                return any(fits(word, text) for text in self._texts(key) for word in words)
            case Equal(key=key, amounts=amounts):
                amount = self._amount(key)
                unit = SECOND if key == "age" else 1
                return amount is not None and any(
                    least <= amount < least + unit for least in amounts
                )
            case Compare(key=key, operator=operator, amount=limit):
                amount = self._amount(key)
                return amount is not None and COMPARISONS[operator](amount, limit)

    def _texts(self, key: str) -> list[str]:
        value: Any = self._shown.get(key, self._shown[self._name])
        if value is None:
            return []
        several = cast("Iterable[object]", value) if isinstance(value, (list, dict)) else [value]
        return list(map(_text, several))

    def _amount(self, key: str) -> float | None:
        if key == "age":
            row: Any = self._row
            made: int = row.created_at
            return self._now - made
        amount: float | None = self._shown[key]
        return amount


def _kind(type: Any) -> Kind:
    types = {*get_args(type)} - {NoneType} if get_origin(type) is UnionType else {type}
    if types == {bool}:
        return Kind.WORD
    return Kind.NUMBER if types <= _NUMBERS else Kind.NAME


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json_text(value)
