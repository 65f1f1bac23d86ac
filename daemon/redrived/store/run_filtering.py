"""A filter of runs as a condition on their table; `redrive.filters.rows` says what one means."""

from __future__ import annotations

from sqlalchemy import BigInteger, ColumnElement, and_, literal, or_, true

from redrive import filters
from redrive.filters.terms import Kind, Term, Vocabulary
from redrive.pipelines.states import RunState
from redrived.store.comparing import COMPARISONS, Texts, equal_to_the_second, turned
from redrived.store.tables import runs

RUNS = Vocabulary(
    keys={
        "pipeline": Kind.NAME,
        "state": Kind.WORD,
        "batch": Kind.NAME,
        "key": Kind.NAME,
        "age": Kind.SPAN,
    },
    words={"state": tuple(state.value for state in RunState)},
)


def where(filter: filters.Filter, now: int, *, is_sqlite: bool) -> ColumnElement[bool]:
    """The condition that holds for the runs that the filter lets through at `now`."""
    texts = Texts(is_sqlite=is_sqlite)
    return and_(
        true(),
        *(
            or_(*(turned(term, _condition(term, now, texts)) for term in alternatives))
            for alternatives in filter.alternatives()
        ),
    )


def _condition(term: Term, now: int, texts: Texts) -> ColumnElement[bool]:
    age = literal(now, BigInteger) - runs.c.created_at
    match term:
        case filters.Text(glob=glob):
            return texts.like(runs.c.key, ("", *glob, ""))
        case filters.Match(key=key, words=words):
            return texts.fit(runs.c[key], words)
        case filters.Equal(amounts=amounts):
            return equal_to_the_second(age, amounts)
        case filters.Compare(operator=operator, amount=limit):
            return COMPARISONS[operator](age, literal(limit, BigInteger))
