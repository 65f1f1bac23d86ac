"""Which jobs have an error of some type, or of a group: found by name, in whatever state.

Indexes have the jobs in the order of state, name and id. So the types that there are at all
are read by leaping from each to the next, however many jobs have it, and the jobs of a name
in one state come in the order of their ids.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from sqlalchemy import Column, Connection, text

from redrive.filters import Filter, Match, matches
from redrive.lifecycle import JobState
from redrive.models import ErrorRecord, Job
from redrived.store.tables import jobs

MOST_TYPES = 100  # of errors in one state: leaping to more of them costs more than it saves


class Failures(NamedTuple):
    """What a filter asks of errors, as the names they have in each state."""

    column: Column[str]
    names: Sequence[tuple[JobState, str]]
    rest: Filter  # what else it asks


def failures(
    connection: Connection, filter: Filter, states: Collection[JobState]
) -> Failures | None:
    """None: it does not ask for errors, or not by names of which there are few."""
    if words := _asked(filter, "group"):
        if any(len(word) > 1 for term in words for word in term.words):
            return None
        groups = sorted({word for term in words for (word,) in term.words})
        names = [(state, group) for state in sorted(states) for group in groups]
        return Failures(jobs.c.fingerprint, names, _without(filter, words))
    if words := _asked(filter, "error"):
        types = _types(connection, states)
        if types is None:
            return None
        meant = Filter(terms=tuple(words))
        names = [each for each in types if matches(meant, _failed(each[1]), now=0)]
        return Failures(jobs.c.error_type, names, _without(filter, words))
    return None


def _asked(filter: Filter, key: str) -> list[Match]:
    return [
        term
        for term in filter.terms
        if isinstance(term, Match) and term.key == key and not term.negated
    ]


def _without(filter: Filter, terms: Collection[Match]) -> Filter:
    return Filter(terms=tuple(term for term in filter.terms if term not in terms))


def _failed(error_type: str) -> Job:
    error = ErrorRecord(error_type=error_type, category="unknown", message="")
    return Job(id=0, task="", queue="", error=error)


def _types(
    connection: Connection, states: Collection[JobState]
) -> list[tuple[JobState, str]] | None:
    """The types of the last errors of jobs in these states; None where there are too many."""
    if not states:
        return []
    listed = ", ".join(f"('{state}')" for state in sorted(states))
    rows = connection.execute(text(_LEAPS.format(states=listed)), {"most": MOST_TYPES}).all()
    if any(n > MOST_TYPES for _, _, n in rows):
        return None
    return [(JobState(state), error_type) for state, error_type, _ in rows]


_LEAPS = """
    WITH RECURSIVE
    states(state) AS (VALUES {states}),
    leaps(state, error_type, n) AS (
        SELECT state, (SELECT min(error_type) FROM jobs
            WHERE jobs.state = states.state AND error_type IS NOT NULL), 1
        FROM states
        UNION ALL
        SELECT state, (SELECT min(error_type) FROM jobs
            WHERE jobs.state = leaps.state AND jobs.error_type > leaps.error_type), n + 1
        FROM leaps WHERE error_type IS NOT NULL AND n <= :most
    )
    SELECT state, error_type, n FROM leaps WHERE error_type IS NOT NULL ORDER BY 1, 2
"""
