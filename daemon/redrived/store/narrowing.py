"""Where the jobs of a list can be, before it is looked for them.

Nothing orders what is done but its ids, and it is most of the table: a list that finds nothing
there has read it all. The filter says which states are not worth a look, and the counts say
where there is nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple, Protocol

from sqlalchemy import Connection, and_, text

from redrive.filters import Filter, Match
from redrive.filters.states import possible_states
from redrive.lifecycle import DONE, WAITING, JobState
from redrived.store import tallies
from redrived.store.failures import Failures, failures
from redrived.store.filtering import where
from redrived.store.job_pages import Part, never
from redrived.store.store import Condition
from redrived.store.tables import BATCH, DUE, HELD, KEY, READY, jobs
from redrived.store.tallies import Counts

FEW = 4  # to find a job by an index costs as much as passing so many by
MOST_PARTS = 20  # beyond it, it is better to sort


class Narrowed(NamedTuple):
    where: Condition
    parts: list[Part]  # the same in parts, each with an index; none: better walk the ids, or sort
    is_empty: bool


def narrowed(
    connection: Connection,
    filter: Filter,
    counts: Counts,
    aside: Counts,
    now: int,
    *,
    sort: str = "-id",
) -> Narrowed:
    """The condition of a filter, said of no more jobs than need a look."""
    here = _by_state(filter, counts)
    is_sqlite = connection.dialect.name == "sqlite"

    def of(filter: Filter, among: Collection[JobState], *, by_index: bool) -> Condition:
        return where(filter, now, is_sqlite=is_sqlite, among=among, by_index=by_index)

    if found := failures(connection, filter, here):
        return _of_failures(found, sort, of)
    totals = tallies.by_state(counts)
    everything = sum(totals.values())
    are_few = len(here) == 1 or FEW * sum(here.values()) <= everything
    # Where all of some states match, none is passed by on the way: but all others are by id.
    are_whole = tallies.matching(counts, filter) == sum(totals[each] for each in here) < everything
    by_index = DONE not in here and (are_few or are_whole)
    condition = of(filter, here, by_index=by_index)
    parts: list[Part] = []
    if by_index and sort.removeprefix("-") == "id":
        parts = [Part(of(filter, {state}, by_index=True)) for state in sorted(here)]
    elif sort.removeprefix("-") == "next":
        waiting = sum(totals[state] for state in WAITING)
        are_most = FEW * sum(totals[state] for state in here.keys() & WAITING) > waiting
        parts = _by_next(filter, here, tallies.has_held(aside), are_most, sort, of)
    return Narrowed(condition, parts, is_empty=not here)


class _Of(Protocol):
    def __call__(
        self, filter: Filter, among: Collection[JobState], *, by_index: bool
    ) -> Condition: ...


def _of_failures(found: Failures, sort: str, of: _Of) -> Narrowed:
    states = {state for state, _ in found.names}
    names = sorted({name for _, name in found.names})
    condition = and_(of(found.rest, states, by_index=False), found.column.in_(names))
    parts: list[Part] = []
    if sort.removeprefix("-") == "id" and len(found.names) <= MOST_PARTS:
        parts = [
            Part(and_(of(found.rest, {state}, by_index=False), found.column == name))
            for state, name in found.names
        ]
    return Narrowed(condition, parts, is_empty=not found.names)


def _by_next(
    filter: Filter, here: Mapping[JobState, int], has_held: bool, are_most: bool, sort: str, of: _Of
) -> list[Part]:
    """What is due has an index in its order; so has, by ids, what waits no more."""
    waiting, others = here.keys() & WAITING, here.keys() - WAITING
    parts: list[Part] = []
    if waiting and are_most:
        for waits in (READY, DUE, KEY, BATCH, HELD) if has_held else (READY, DUE, KEY, BATCH):
            clause = and_(text(f"waits = '{waits}'"), of(filter, waiting, by_index=waits == HELD))
            parts.append(Part(clause, jobs.c.available_at))
    elif waiting:
        parts.append(Part(of(filter, waiting, by_index=True), jobs.c.available_at))
    if DONE in others:
        parts.append(Part(of(filter, others, by_index=False), never(sort)))
    else:
        parts += [Part(of(filter, {state}, by_index=True), never(sort)) for state in sorted(others)]
    return parts


def _by_state(filter: Filter, counts: Counts) -> dict[JobState, int]:
    """How many jobs are in each state that can match, as far as its queues and tasks tell."""
    lanes = [
        term
        for alternatives in filter.alternatives()
        if all(isinstance(term, Match) and term.key in ("queue", "task") for term in alternatives)
        for term in alternatives
    ]
    here: dict[JobState, int] = {}
    for state in possible_states(filter):
        alike = Filter(terms=(*lanes, Match(key="state", words=((state.value,),))))
        if n := tallies.matching(counts, alike):
            here[state] = n
    return here
