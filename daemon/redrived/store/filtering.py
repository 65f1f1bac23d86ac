"""A filter as a condition on the jobs table.

What a filter means is said by `redrive.filters.matches`; the conditions here find the same
jobs on SQLite and PostgreSQL, and are tested against it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    ColumnElement,
    Text,
    TextClause,
    and_,
    case,
    cast,
    false,
    func,
    literal,
    or_,
    text,
    true,
)

from redrive import filters
from redrive.clock import SECOND, from_datetime
from redrive.filters.matching import argument_globs, escaped
from redrive.filters.states import EVERY, is_of_states_alone, possible_states
from redrive.filters.terms import ARGUMENT, KEYS, SCREEN_STATES, Glob, Kind, Term
from redrive.lifecycle import DONE, WAITING, JobState
from redrived.store.comparing import COMPARISONS, Texts, equal_to_the_second, turned
from redrived.store.tables import HELD, jobs

_COLUMNS = {"group": "fingerprint", "unique": "unique_key", "attempt": "attempts"}


def where(
    filter: filters.Filter,
    now: int,
    *,
    is_sqlite: bool,
    among: Collection[JobState] = EVERY,
    by_index: bool = True,
) -> ColumnElement[bool]:
    """The condition that holds for the jobs of some states that the filter lets through at `now`.

    With `by_index` it is one that a database answers from what is not done, if that is enough.
    """
    conditions = _Conditions(now, is_sqlite)
    return and_(
        true(),
        *_in_states(filter, possible_states(filter).intersection(among), by_index),
        *(
            or_(*map(conditions.of, alternatives))
            for alternatives in filter.alternatives()
            if not is_of_states_alone(alternatives)
        ),
    )


def _in_states(
    filter: filters.Filter, states: Collection[JobState], by_index: bool
) -> Iterable[ColumnElement[bool] | TextClause]:
    if not states:
        yield false()
    elif len(states) == 1:
        yield jobs.c.state == next(iter(states))
    elif len(states) < len(EVERY):
        yield jobs.c.state.in_(sorted(states))
    if by_index and DONE not in states:
        yield IS_NOT_DONE


class _Conditions:
    def __init__(self, now: int, is_sqlite: bool) -> None:
        self.at = now
        self.now = literal(now, BigInteger)
        self.is_sqlite = is_sqlite
        self.texts = Texts(is_sqlite=is_sqlite)

    def of(self, term: Term) -> ColumnElement[bool]:
        return turned(term, self._plain(term))

    def _plain(self, term: Term) -> ColumnElement[bool]:
        match term:
            case filters.Text(glob=glob):
                return self._contain(glob)
            case filters.Equal(key=key, amounts=amounts):
                return self._equal(key, amounts)
            case filters.Compare(key="next", operator=operator, amount=limit):
                # The other way round than `_amount` says it: so an index can begin there.
                instant = literal(min(self.at + limit, _LAST), BigInteger)
                return and_(_WAITS, COMPARISONS[operator](jobs.c.available_at, instant))
            case filters.Compare(key=key, operator=operator, amount=limit):
                return COMPARISONS[operator](self._amount(key), literal(limit, BigInteger))
            case filters.Match(key="state", words=words):
                return or_(*(self._in_state(word) for (word,) in words))
            case filters.Match(key="held", words=words):
                return or_(*(_is_held() if word == ("yes",) else ~_is_held() for word in words))
            case filters.Match(key="day", words=words):
                return or_(*(jobs.c.finished_at.between(*_day(day)) for (day,) in words))
            case filters.Match(key="run", words=words):
                return jobs.c.run_id.in_([int(word[1:]) for (word,) in words])
            case filters.Match(key="error", words=words):
                return or_(*(self.texts.like(jobs.c.error_type, word) for word in words))
            case filters.Match(key=key, words=words) if key.startswith(ARGUMENT):
                argument = self._argument(key.removeprefix(ARGUMENT).split("."))
                return self.texts.fit(
                    argument, (glob for word in words for glob in argument_globs(word))
                )
            case filters.Match(key=key, words=words):
                return self.texts.fit(jobs.c[_COLUMNS.get(key, key)], words)

    def _in_state(self, word: str) -> ColumnElement[bool]:
        match word:
            case "held":
                return _is_held()
            case "scheduled":
                return and_(jobs.c.state == "queued", jobs.c.available_at > self.now)
            case _:
                return jobs.c.state == str(SCREEN_STATES.get(word, word))

    def _amount(self, key: str) -> ColumnElement[Any]:
        match key:
            case "age":
                return self.now - jobs.c.created_at
            case "duration":
                ended = case((jobs.c.state == "leased", self.now), else_=jobs.c.finished_at)
                return ended - jobs.c.started_at
            case "next":
                return case((_WAITS, jobs.c.available_at - self.now))
            case _:
                return jobs.c[_COLUMNS.get(key, key)]

    def _equal(self, key: str, amounts: Iterable[int]) -> ColumnElement[bool]:
        amount = self._amount(key)
        if KEYS[key] is Kind.NUMBER:
            return amount.in_([literal(number, BigInteger) for number in amounts])
        return equal_to_the_second(amount, amounts)

    def _contain(self, glob: Glob) -> ColumnElement[bool]:
        places = [
            jobs.c.task,
            jobs.c.error_type,
            self._in_error("message"),
            self._in_error("user_message"),
        ]
        in_json = ("", *map(escaped, glob), "")
        return or_(
            *(self.texts.like(place, ("", *glob, "")) for place in places),
            self.texts.like(jobs.c.args, in_json),
        )

    # Where the databases differ: JSON.

    def _argument(self, path: list[str]) -> ColumnElement[Any]:
        """The JSON of an argument, as text."""
        if self.is_sqlite:  # where one row that holds no JSON would spoil the whole answer
            args = case((func.json_valid(jobs.c.args), jobs.c.args))
            return args.op("->", return_type=Text())("$" + "".join(f'."{n}"' for n in path))
        value: ColumnElement[Any] = cast(_without_nul(jobs.c.args), JSON)
        for name in path:
            value = value.op("->", return_type=JSON())(literal(name, Text))
        return cast(value, Text)

    def _in_error(self, name: str) -> ColumnElement[Any]:
        error = _without_nul(jobs.c.error)
        if self.is_sqlite:
            return error.op("->>", return_type=Text())(f"$.{name}")
        return cast(error, JSON).op("->>", return_type=Text())(literal(name, Text))


def _without_nul(json: ColumnElement[Any]) -> ColumnElement[Any]:
    """A NUL ends a text for SQLite, and the whole question for PostgreSQL."""
    return func.replace(json, r"\u0000", r"\ufffd")


_WAITS = jobs.c.state.in_(sorted(WAITING))
_LAST = 2**63 - 1  # instant that a column holds
IS_NOT_DONE = text("state <> 'done'")  # the index is used where the condition has its words


def _day(day: str) -> tuple[ColumnElement[int], ColumnElement[int]]:
    """Its first and its last instant."""
    first = from_datetime(datetime.fromisoformat(day).replace(tzinfo=UTC))
    return literal(first, BigInteger), literal(first + 86_400 * SECOND - 1, BigInteger)


def _is_held() -> ColumnElement[bool]:
    return jobs.c.waits.is_not_distinct_from(HELD)
