"""What a filter is made of: the keys, the terms, and how terms combine."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import Literal, TypeAlias

from msgspec import Struct

from redrive.errors import UsageProblem
from redrive.lifecycle import JobState, Reason


class Kind(Enum):
    """What stands behind a key, and so what may follow it."""

    WORD = auto()  # one of a few
    NAME = auto()
    RUN = auto()  # r7
    NUMBER = auto()
    SPAN = auto()  # 2h
    DAY = auto()  # 2026-09-21, as UTC has it


KEYS: Mapping[str, Kind] = MappingProxyType(
    {
        "state": Kind.WORD,
        "queue": Kind.NAME,
        "task": Kind.NAME,
        "operation": Kind.NAME,
        "mode": Kind.NAME,
        "error": Kind.NAME,
        "group": Kind.NAME,
        "batch": Kind.NAME,
        "run": Kind.RUN,
        "step": Kind.NAME,
        "node": Kind.NAME,
        "id": Kind.NUMBER,
        "priority": Kind.NUMBER,
        "attempt": Kind.NUMBER,
        "age": Kind.SPAN,
        "duration": Kind.SPAN,
        "next": Kind.SPAN,
        "day": Kind.DAY,  # on which it ended
        "unique": Kind.NAME,
        "held": Kind.WORD,
        "reason": Kind.WORD,
    }
)
ARGUMENT = "arg."  # the prefix of a path into the arguments

# The words of the screen for states, beside the states' own.
SCREEN_STATES: Mapping[str, JobState] = MappingProxyType(
    {"running": JobState.LEASED, "retrying": JobState.RETRY}
)
WORDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "state": (*(state.value for state in JobState), *SCREEN_STATES, "scheduled", "held"),
        "held": ("yes", "no"),
        "reason": tuple(reason.value for reason in Reason),
    }
)
SORT_KEYS = ("id", "state", "queue", "task", "priority", "attempt", "age", "next", "finished")


class Vocabulary(Struct, frozen=True, kw_only=True):
    """What may be asked of the things in one list; the grammar is the same for all of them."""

    keys: Mapping[str, Kind]
    words: Mapping[str, tuple[str, ...]] = {}
    sorts: tuple[str, ...] = ()  # none: it is not for the filter to order them
    has_arguments: bool = False


JOBS = Vocabulary(keys=KEYS, words=WORDS, sorts=SORT_KEYS, has_arguments=True)

Operator = Literal[">", ">=", "<", "<="]
# The literal text between wildcards: `a*b` is ("a", "b"), and without any `a` is ("a",).
Glob: TypeAlias = tuple[str, ...]


class Match(Struct, frozen=True, kw_only=True, tag="match"):
    """`key:word,word`: one of the words fits."""

    key: str
    words: tuple[Glob, ...]
    negated: bool = False


class Equal(Struct, frozen=True, kw_only=True, tag="equal"):
    """`key:amount,amount`: it is one of the amounts; spans are microseconds, equal to the second."""

    key: str
    amounts: tuple[int, ...]
    negated: bool = False


class Compare(Struct, frozen=True, kw_only=True, tag="compare"):
    """`key>amount`."""

    key: str
    operator: Operator
    amount: int
    negated: bool = False


class Text(Struct, frozen=True, kw_only=True, tag="text"):
    """Free text, found anywhere in the task's name, the last error or the arguments."""

    glob: Glob
    negated: bool = False


class Sort(Struct, frozen=True, kw_only=True):
    key: str
    descending: bool = False


Term: TypeAlias = Match | Equal | Compare | Text


class Filter(Struct, frozen=True, kw_only=True):
    """A filter, understood; `redrive.filters.parse` makes them from text."""

    terms: tuple[Match | Equal | Compare | Text, ...] = ()
    sort: tuple[Sort, ...] = ()

    def alternatives(self) -> list[list[Term]]:
        """The filter as an AND of ORs: terms of one key stand together, if they name values."""
        together: dict[str, list[Term]] = {}
        alone: list[list[Term]] = []
        for term in self.terms:
            match term:
                case Match(key=key, negated=False) | Equal(key=key, negated=False):
                    together.setdefault(key, []).append(term)
                case _:
                    alone.append([term])
        return [*together.values(), *alone]


class FilterProblem(UsageProblem):
    """The filter cannot be understood; `picture` points at the place."""

    def __init__(self, what: str, *, text: str, column: int, hint: str = "") -> None:
        super().__init__(f"column {column} of the filter: {what}", hint=hint)
        self.what = what
        self.text = text
        self.column = column  # from 1

    @property
    def picture(self) -> str:
        """The filter, and under it a caret and what is wrong there."""
        hint = f"; {self.hint}" if self.hint else ""
        return f"{self.text}\n{' ' * (self.column - 1)}^ {self.what}{hint}"
