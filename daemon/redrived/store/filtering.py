"""A filter as a condition on the jobs table.

What a filter means is said by `redrive.filters.matches`; the conditions here find the same
jobs, on SQLite and PostgreSQL, and are tested against it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import ge, gt, le, lt
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    ColumnElement,
    Text,
    and_,
    case,
    cast,
    collate,
    false,
    func,
    literal,
    or_,
    true,
)

from redrive import filters
from redrive.clock import SECOND
from redrive.filters.matching import argument_globs, json_text
from redrive.filters.terms import ARGUMENT, KEYS, SCREEN_STATES, Glob, Kind, Operator, Term
from redrive.lifecycle import LEASED, QUEUED, WAITING
from redrived.store.tables import HELD, jobs

_COMPARISONS: Mapping[Operator, Callable[[Any, Any], ColumnElement[bool]]] = {
    ">": gt,
    ">=": ge,
    "<": lt,
    "<=": le,
}
_COLUMNS: Mapping[str, ColumnElement[Any]] = {
    "error": jobs.c.error_type,
    "group": jobs.c.fingerprint,
    "unique": jobs.c.unique_key,
    "attempt": jobs.c.attempts,
}


def where(filter: filters.Filter, now: int, *, is_sqlite: bool) -> ColumnElement[bool]:
    """The condition that holds for the jobs the filter lets through at `now`."""
    return _Conditions(now, is_sqlite).all_of(filter)


class _Conditions:
    def __init__(self, now: int, is_sqlite: bool) -> None:
        self.now = literal(now, BigInteger)
        self.is_sqlite = is_sqlite

    def all_of(self, filter: filters.Filter) -> ColumnElement[bool]:
        groups = (or_(*map(self.term, terms)) for terms in filter.alternatives())
        return and_(true(), *groups)

    def term(self, term: Term) -> ColumnElement[bool]:
        condition = self.plain(term)
        # A job without a value is not one with this value: NULL must not swallow the job.
        return condition.is_not(true()) if term.negated else condition

    def plain(self, term: Term) -> ColumnElement[bool]:
        match term:
            case filters.Text(glob=glob):
                return self.contains(glob)
            case filters.Equal(key=key, amounts=amounts):
                return self.equals(key, amounts)
            case filters.Compare(key=key, operator=operator, amount=amount):
                return _COMPARISONS[operator](self.amount(key), literal(amount, BigInteger))
            case filters.Match(key="state", words=words):
                return or_(*(self.in_state(word) for (word,) in words))
            case filters.Match(key="held", words=words):
                is_held = func.coalesce(jobs.c.waits == HELD, false())
                return or_(*(is_held.is_(word == ("yes",)) for word in words))
            case filters.Match(key="run", words=words):
                return jobs.c.run_id.in_([int(word[1:]) for (word,) in words])
            case filters.Match(key=key, words=words) if key.startswith(ARGUMENT):
                argument = self.argument(key.removeprefix(ARGUMENT).split("."))
                globs = [glob for word in words for glob in argument_globs(word)]
                return self.fits(argument, globs)
            case filters.Match(key="error", words=words):
                return or_(*(self.like(jobs.c.error_type, word) for word in words))
            case filters.Match(key=key, words=words):
                return self.fits(_COLUMNS.get(key, jobs.c[key]), list(words))
