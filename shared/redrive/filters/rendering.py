"""A filter as text: what `parse` reads back as the same filter."""

from __future__ import annotations

import re

from redrive.clock import SECOND
from redrive.config.values import format_duration
from redrive.filters.terms import KEYS, Compare, Equal, Filter, Glob, Kind, Match, Sort, Term, Text

_PLAIN = re.compile(r"[\w./@%+~-]*")


def render(filter: Filter) -> str:
    """The text of a filter, terms first, in their order."""
    terms = [("!" if term.negated else "") + _term(term) for term in filter.terms]
    return " ".join(terms + ([_sort(filter.sort)] if filter.sort else []))


def quoted(text: str) -> str:
    """Text as a value of the language, in quotes where it needs them."""
    if text and _PLAIN.fullmatch(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _term(term: Term) -> str:
    match term:
        case Text(glob=glob):
            return _glob(glob)
        case Match(key=key, words=words):
            return f"{key}:{','.join(map(_glob, words))}"
        case Equal(key=key, amounts=amounts):
            return f"{key}:{','.join(_amount(key, amount) for amount in amounts)}"
        case Compare(key=key, operator=operator, amount=amount):
            return f"{key}{operator}{_amount(key, amount)}"


def _glob(glob: Glob) -> str:
    if len(glob) == 1:
        return quoted(glob[0])
    return "*".join(quoted(part) if part else "" for part in glob)


def _amount(key: str, amount: int) -> str:
    return format_duration(amount / SECOND) if KEYS[key] is Kind.SPAN else str(amount)


def _sort(sort: tuple[Sort, ...]) -> str:
    return "sort:" + ",".join(("-" if by.descending else "") + by.key for by in sort)
