"""What could be typed next in a filter: keys first, then their values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from redrive.filters.rendering import quoted
from redrive.filters.terms import ARGUMENT, KEYS, SORT_KEYS, WORDS, Kind

_TERM = re.compile(r'(?:"(?:[^"\\]|\\.)*(?:"|$)|[^\s"])+', re.DOTALL)
_VALUES = re.compile(r"(?P<key>[\w.-]+)(?::|=)(?P<before>(?:.*,)?)(?P<value>.*)", re.DOTALL)


class Completion(Struct, frozen=True, kw_only=True):
    """`candidates` that may each stand in the place of the text from `start` to the cursor."""

    start: int
    candidates: tuple[str, ...]


def complete(
    text: str, cursor: int, known: Mapping[str, Iterable[str]] | None = None
) -> Completion:
    """What fits at the cursor; `known` adds values of keys, such as the queues there are."""
    terms = [found for found in _TERM.finditer(text[:cursor]) if found.end() == cursor]
    term = terms[0][0].removeprefix("!") if terms else ""
    values = _VALUES.fullmatch(term)
    if values is None:
        return Completion(start=cursor - len(term), candidates=_fitting(term, _keys()))
    value = values["value"]
    offered = [quoted(word) for word in _words(values["key"], known or {})]
    return Completion(start=cursor - len(value), candidates=_fitting(value, offered))


def _keys() -> list[str]:
    keys = [key + (">" if kind is Kind.SPAN else ":") for key, kind in KEYS.items()]
    return [*keys, ARGUMENT, "sort:"]


def _words(key: str, known: Mapping[str, Iterable[str]]) -> Iterable[str]:
    if key == "sort":
        return [*SORT_KEYS, *(f"-{key}" for key in SORT_KEYS)]
    return WORDS.get(key) or known.get(key, ())


def _fitting(start: str, offered: Iterable[str]) -> tuple[str, ...]:
    return tuple(word for word in offered if word.startswith(start) and word != start)
