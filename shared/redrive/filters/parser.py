r"""A filter from its text, or the column at which it stops making sense.

filter = { ["!"] term }
term   = "sort:" ["-"] key { "," ["-"] key }
       | key (":" | "=") value { "," value }
       | key [":"] (">" | ">=" | "<" | "<=") value
       | value                                     free text, which keeps its commas
value  = { plain characters | "*" | quoted }       quoted: "…", with \" and \\ inside
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date
from typing import NoReturn

from redrive.clock import SECOND
from redrive.config.values import parse_duration
from redrive.filters.terms import (
    JOBS,
    Compare,
    Equal,
    Filter,
    FilterProblem,
    Glob,
    Kind,
    Match,
    Operator,
    Sort,
    Term,
    Text,
    Vocabulary,
)

# A filter may be run over every job, by a daemon that has other things to do.
LONGEST = 4000
MOST_TERMS = 100
MOST_VALUES = 500
MOST_WILDCARDS = 20

_OPERATORS: Mapping[str, Operator] = {">": ">", ">=": ">=", "<": "<", "<=": "<="}
_KEY = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]*)(:?[<>]=?|[:=])")
_ARGUMENT = re.compile(r"arg(\.[A-Za-z0-9_-]+)+")
_PLAIN = re.compile(r'[^\s",*]+')
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")
_RUN = re.compile(r"r?([0-9]{1,18})")


def parse(text: str, vocabulary: Vocabulary = JOBS) -> Filter:
    """Understand a filter; `FilterProblem` says where it goes wrong and what is near."""
    return _Parser(text, vocabulary).filter()


class _Parser:
    def __init__(self, text: str, vocabulary: Vocabulary) -> None:
        self.text = text
        self.known = vocabulary
        self.place = 0
        self.wildcards = 0
        self.count = 0

    def filter(self) -> Filter:
        if len(self.text) > LONGEST:
            self.fail(LONGEST, f"the filter is longer than {LONGEST} characters")
        if "\0" in self.text:
            self.fail(self.text.index("\0"), "no text holds a NUL character")
        terms: list[Term] = []
        sort: list[Sort] = []
        while self.find_term():
            if self.known.sorts and self.take("sort:"):
                sort.extend(self.sort_key(place, glob) for place, glob in self.values())
            else:
                terms.append(self.term())
            if len(terms) > MOST_TERMS:
                self.fail(self.place, f"more than {MOST_TERMS} terms")
        return Filter(terms=tuple(terms), sort=tuple(sort))

    def find_term(self) -> bool:
        while self.place < len(self.text) and self.text[self.place].isspace():
            self.place += 1
        return self.place < len(self.text)

    def term(self) -> Term:
        negated = self.take("!")
        start = self.place
        found = _KEY.match(self.text, start)
        if found is None:
            return Text(glob=self.value(",", after="!"), negated=negated)
        self.place = found.end()
        key, operator = found[1], _OPERATORS.get(found[2].lstrip(":"))
        kind = self.kind(start, key)
        values = self.values()
        if kind not in (Kind.NUMBER, Kind.SPAN):
            if operator is not None:
                self.fail(start, f"`{key}` cannot be compared", hint=f"write `{key}:` and a value")
            words = tuple(self.word(kind, key, *value) for value in values)
            return Match(key=key, words=words, negated=negated)
        amounts = [self.amount(kind, key, *value) for value in values]
        if operator is None:
            return Equal(key=key, amounts=tuple(amounts), negated=negated)
        if len(amounts) > 1:
            self.fail(start, f"`{key}{operator}` takes one value")
        return Compare(key=key, operator=operator, amount=amounts[0], negated=negated)

    def kind(self, place: int, key: str) -> Kind:
        if self.known.has_arguments and _ARGUMENT.fullmatch(key):
            return Kind.NAME
        if self.known.sorts and key == "sort":
            self.fail(place, "a sort is written `sort:key` or `sort:-key`")
        if key not in self.known.keys:
            self.fail(place, f"unknown key `{key}`", hint=self.instead(key))
        return self.known.keys[key]

    def instead(self, key: str) -> str:
        if self.known is not JOBS:
            return f"it is one of {', '.join(self.known.keys)}"
        if key.startswith("arg"):
            return "an argument is written `arg.NAME`"
        return _nearest(key, (*self.known.keys, "sort")) or "quote it if it is text"

    def word(self, kind: Kind, key: str, place: int, glob: Glob) -> Glob:
        if kind is Kind.NAME:
            return glob
        word = self.literal(place, key, glob)
        if kind is Kind.RUN:
            if not (found := _RUN.fullmatch(word)):
                self.fail(place, f"`{word}` is no run", hint="a run looks like `r7`")
            return (f"r{int(found[1])}",)
        if kind is Kind.DAY:
            if not _is_day(word):
                self.fail(place, f"`{word}` is no day", hint="a day looks like `2026-09-21`")
            return (word,)
        words = self.known.words[key]
        if word not in words:
            hint = _nearest(word, words) or f"it is one of {', '.join(words)}"
            self.fail(place, f"`{word}` is no value of `{key}`", hint=hint)
        return (word,)

    def amount(self, kind: Kind, key: str, place: int, glob: Glob) -> int:
        word = self.literal(place, key, glob)
        if kind is Kind.NUMBER:
            if not _NUMBER.fullmatch(word):
                self.fail(place, f"`{key}` takes a number, not `{word}`")
            return int(word)
        try:
            return round(parse_duration(word) * SECOND)
        except ValueError:
            self.fail(place, f"`{key}` takes a time such as 90s, 15m or 2h, not `{word}`")

    def sort_key(self, place: int, glob: Glob) -> Sort:
        word = self.literal(place, "sort", glob)
        key = word.removeprefix("-")
        sorts = self.known.sorts
        if key not in sorts:
            hint = _nearest(key, sorts) or f"it is one of {', '.join(sorts)}"
            self.fail(place, f"nothing is sorted by `{key}`", hint=hint)
        return Sort(key=key, descending=word != key)

    def literal(self, place: int, key: str, glob: Glob) -> str:
        text, *more = glob
        if more:
            self.fail(place, f"`{key}` takes no `*`")
        return text

    def values(self) -> list[tuple[int, Glob]]:
        """The values up to the next space, each with its place."""
        found = [(self.place, self.value())]
        while self.take(","):
            found.append((self.place, self.value()))
        return found

    def value(self, also: str = "", after: str = "") -> Glob:
        """One value; `also` are separators that are part of it."""
        start = self.place
        parts = [""]
        while self.place < len(self.text):
            if self.take("*"):
                parts.append("")
            elif found := _QUOTED.match(self.text, self.place):
                self.place = found.end()
                parts[-1] += re.sub(r"\\(.)", r"\1", found[1], flags=re.DOTALL)
            elif found := _PLAIN.match(self.text, self.place):
                self.place = found.end()
                parts[-1] += found[0]
            elif self.text[self.place] in also:
                parts[-1] += self.text[self.place]
                self.place += 1
            elif self.text[self.place] == '"':
                self.fail(self.place, "this quote is never closed")
            else:
                break
        if self.place == start:
            self.fail(start, f"a value is missing after `{after or self.text[start - 1]}`")
        self.count += 1
        if self.count > MOST_VALUES:
            self.fail(start, f"more than {MOST_VALUES} values")
        self.wildcards += len(parts) - 1
        if self.wildcards > MOST_WILDCARDS:
            self.fail(start, f"more than {MOST_WILDCARDS} wildcards")
        return tuple(parts)

    def take(self, expected: str) -> bool:
        taken = self.text.startswith(expected, self.place)
        self.place += len(expected) if taken else 0
        return taken

    def fail(self, place: int, what: str, hint: str = "") -> NoReturn:
        raise FilterProblem(what, text=self.text, column=place + 1, hint=hint)


def _is_day(word: str) -> bool:
    try:
        return date.fromisoformat(word).isoformat() == word
    except ValueError:
        return False


def _nearest(word: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(word, list(known), n=1)
    return f"did you mean `{near[0]}`?" if near else ""
