"""Filters and jobs to draw from, chosen so that they meet often."""

from __future__ import annotations

from typing import get_args

from hypothesis import strategies as st

from redrive.clock import SECOND
from redrive.filters import Compare, Equal, Filter, Match, Sort, Text
from redrive.filters.terms import KEYS, SORT_KEYS, WORDS, Glob, Kind, Operator, Term
from redrive.lifecycle import FINISHED, LEASED, JobState, Reason
from redrive.models import ErrorRecord, Job

NOW = 1_780_000_000 * SECOND

# Few words, so that a filter finds something; and those that a database could trip over.
texts = st.sampled_from(
    [
        *("", "mail", "Mail", "send_mail", "mail,post", "é", "É", "42", "true", "null"),
        *("a b", "a%b", "a_b", "a?b", "[x]", 'say "hi"', "\\", "\t", "!", "*", "state:dead"),
    ]
) | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=4)
names = st.sampled_from(["mail", "Mail", "send_mail", "bulk"]) | texts
globs: st.SearchStrategy[Glob] = st.lists(texts, min_size=1, max_size=3).map(tuple)
spans = st.integers(0, 20).map(lambda seconds: seconds * SECOND) | st.integers(0, 20 * SECOND)
arguments = st.sampled_from(["arg.to", "arg.user.id", "arg.items.0", "arg.to.deep", "arg.missing"])


def _matches() -> st.SearchStrategy[Term]:
    name_keys = [key for key, kind in KEYS.items() if kind is Kind.NAME]
    named = st.builds(
        Match,
        key=st.sampled_from(name_keys) | arguments,
        words=st.lists(globs, min_size=1, max_size=2).map(tuple),
        negated=st.booleans(),
    )
    runs = st.integers(1, 3).map(lambda number: Match(key="run", words=((f"r{number}",),)))
    days = st.sampled_from(["2026-05-28", "2026-05-29"]).map(
        lambda day: Match(key="day", words=((day,),))
    )
    fixed = [(key, (word,)) for key, words in WORDS.items() for word in words]
    worded = st.builds(
        lambda pair, negated: Match(key=pair[0], words=(pair[1],), negated=negated),
        st.sampled_from(fixed),
        st.booleans(),
    )
    return st.one_of(named, runs, days, worded)


def _amounts() -> st.SearchStrategy[Term]:
    def of(key: str) -> st.SearchStrategy[Term]:
        amounts = spans if KEYS[key] is Kind.SPAN else st.integers(-3, 10)
        return st.one_of(
            st.builds(
                Equal,
                key=st.just(key),
                amounts=st.lists(amounts, min_size=1, max_size=2).map(tuple),
                negated=st.booleans(),
            ),
            st.builds(
                Compare,
                key=st.just(key),
                operator=st.sampled_from(get_args(Operator)),
                amount=amounts,
                negated=st.booleans(),
            ),
        )

    counted = [key for key, kind in KEYS.items() if kind in (Kind.NUMBER, Kind.SPAN)]
    return st.sampled_from(counted).flatmap(of)


terms = st.one_of(_matches(), _amounts(), st.builds(Text, glob=globs, negated=st.booleans()))
sorts = st.builds(Sort, key=st.sampled_from(SORT_KEYS), descending=st.booleans())
filters = st.builds(
    Filter,
    terms=st.lists(terms, max_size=4).map(tuple),
    sort=st.lists(sorts, max_size=2).map(tuple),
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 50) | st.floats(-9, 9) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
job_args = st.fixed_dictionaries(
    {},
    optional={
        "to": json_values,
        "user": st.dictionaries(st.sampled_from(["id", "name"]), json_values),
        "items": json_values,
    },
)
errors = st.builds(
    ErrorRecord,
    error_type=names,
    category=st.just("transient"),
    message=texts,
    user_message=texts,
    fingerprint=names,
)


@st.composite
def jobs(draw: st.DrawFn, ids: st.SearchStrategy[int] | None = None) -> Job:
    """A job as the store could hold it."""
    state = draw(st.sampled_from(JobState))
    finished = state in FINISHED
    moments = st.integers(-20 * SECOND, 20 * SECOND).map(lambda away: NOW + away)
    return Job(
        id=draw(ids or st.integers(1, 10)),
        task=draw(names),
        queue=draw(names),
        operation=draw(st.none() | names),
        mode=draw(st.none() | names),
        priority=draw(st.integers(-3, 3)),
        state=state,
        held=state in (JobState.QUEUED, JobState.RETRY) and draw(st.booleans()),
        reason=draw(st.sampled_from(Reason)).value if state is JobState.DEAD else None,
        attempts=draw(st.integers(0, 10)),
        available_at=draw(moments),
        created_at=draw(moments),
        started_at=draw(moments if state is LEASED else st.none() | moments),
        finished_at=draw(moments) if finished else None,
        node=draw(st.none() | names),
        error=None if state is JobState.DONE else draw(st.none() | errors),
        run=draw(st.none() | st.sampled_from(["r1", "r2", "r3"])),
        step=draw(st.none() | names),
        batch=draw(st.none() | names),
        unique=draw(st.none() | names),
        args=draw(job_args),
    )
