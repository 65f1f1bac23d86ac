"""Where the jobs of a list can be, before it is looked for them.

Nothing orders what is done but its ids, and it is most of the table: a list that finds nothing
there has read it all. The filter says which states are not worth a look, and the counts say
where there is nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from redrive.filters import Filter, Match
from redrive.filters.states import possible_states
from redrive.lifecycle import DONE, JobState
from redrived.store import tallies
from redrived.store.filtering import where
from redrived.store.store import Condition
from redrived.store.tallies import Counts

FEW = 4  # to find a job by an index costs as much as passing so many by


class Narrowed(NamedTuple):
    where: Condition
    parts: list[Condition]  # the same in parts, each with an index; none: better walk the ids
    is_empty: bool


def narrowed(filter: Filter, counts: Counts, now: int, *, is_sqlite: bool) -> Narrowed:
    """The condition of a filter, said of no more states than there is something in."""
    here = _by_state(filter, counts)
    everything = sum(tallies.by_state(counts).values())
    are_few = len(here) == 1 or FEW * sum(here.values()) <= everything
    by_index = DONE not in here and are_few
    condition = where(filter, now, is_sqlite=is_sqlite, among=here, by_index=by_index)
    parts: list[Condition] = []
    if by_index:
        parts = [where(filter, now, is_sqlite=is_sqlite, among={state}) for state in sorted(here)]
    return Narrowed(condition, parts, is_empty=not here)


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
