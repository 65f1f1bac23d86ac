"""The counts that every commit keeps up: read, never counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

from redrive.filters import Filter, Match, matches
from redrive.filters.terms import SCREEN_STATES
from redrive.lifecycle import JobState
from redrive.models import Job
from redrived.store.tables import HELD
from redrived.store.unit import ASIDE, Unit

Counts = dict[str, dict[str, dict[str, int]]]  # queue → task → state → jobs


def read(connection: Connection) -> Counts:
    return read_with_waits(connection)[0]


def read_with_waits(connection: Connection) -> tuple[Counts, Counts]:
    """Jobs by state; and those among them that no slot could begin now, by a word of `ASIDE`."""
    states: Counts = {}
    aside: Counts = {}
    for queue, task, word, n in connection.execute(
        text("SELECT queue, task, state, sum(n) FROM tallies GROUP BY queue, task, state")
    ):
        if n and word in _COUNTED:  # somebody may have written a state that is none
            counts = aside if word in _ASIDE else states
            counts.setdefault(queue, {}).setdefault(task, {})[word] = int(n)
    return states, aside


_ASIDE = frozenset(ASIDE.values())
_COUNTED = _ASIDE | {str(state) for state in JobState}
_WAITING_ASIDE = " ".join(
    f"WHEN state = '{state}' AND waits = '{waits}' THEN '{word}'"
    for (state, waits), word in ASIDE.items()
)


def has_held(aside: Counts) -> bool:
    return any(
        n
        for tasks in aside.values()
        for words in tasks.values()
        for word, n in words.items()
        if word in _HELD
    )


_HELD = frozenset(word for (_, waits), word in ASIDE.items() if waits == HELD)


class Missing(NamedTuple):
    """How many jobs more there are than the counts say; below 0: fewer."""

    queue: str
    task: str
    state: str
    n: int


def missing(connection: Connection) -> list[Missing]:
    """Where the counts are wrong, found by counting every job of one snapshot."""
    rows = connection.execute(
        text(
            "SELECT CAST(queue AS TEXT), CAST(task AS TEXT), state, sum(n) FROM ("
            "SELECT queue, task, state, count(*) AS n FROM jobs GROUP BY queue, task, state"
            f" UNION ALL SELECT queue, task, CASE {_WAITING_ASIDE} END AS word, count(*) FROM jobs"
            f" WHERE CASE {_WAITING_ASIDE} END IS NOT NULL GROUP BY queue, task, word"
            " UNION ALL SELECT queue, task, state, -n FROM tallies) AS both_counts"
            " GROUP BY queue, task, state HAVING sum(n) <> 0"
        )
    )
    return [Missing(queue, task, state, int(n)) for queue, task, state, n in rows]


def correct(unit: Unit, items: Sequence[Sequence[Missing]]) -> list[None]:
    """Add what is missing; what has changed since was counted, right or wrong, on its own."""
    for item in items:
        for each in item:
            unit.moved(each.queue, each.task, None, each.state, each.n)
    return [None] * len(items)


def take_over(unit: Unit, limit: int) -> int:
    """Count as our own what nodes have counted that are forgotten; how many rows of theirs.

    A node may come back at this very moment. Whoever is first locks the row: we take what it
    says by then, and what is counted after us begins another.
    """
    theirs = "node <> :node AND node NOT IN (SELECT name FROM nodes)"
    rows = unit.execute(
        "DELETE FROM tallies WHERE (node, queue, task, state) IN"
        f" (SELECT node, queue, task, state FROM tallies WHERE {theirs} LIMIT :limit)"
        " RETURNING queue, task, state, n",
        node=unit.node,
        limit=limit,
    ).all()
    for queue, task, state, n in rows:
        unit.moved(queue, task, None, state, n)
    return len(rows)


_STATES = {str(state) for state in JobState} | SCREEN_STATES.keys()


def matching(counts: Counts, filter: Filter) -> int | None:
    """How many jobs match, where the counts can tell; None where only the rows can."""
    if not all(isinstance(term, Match) and _is_counted(term) for term in filter.terms):
        return None
    return sum(
        n
        for queue, tasks in counts.items()
        for task, states in tasks.items()
        for state, n in states.items()
        if matches(filter, Job(id=0, task=task, queue=queue, state=JobState(state)), now=0)
    )


def _is_counted(term: Match) -> bool:
    if term.key == "state":
        return all(word in _STATES for (word,) in term.words)
    return term.key in ("queue", "task")


def by_state(counts: Counts) -> dict[str, int]:
    """Jobs in each state; every state is named, also the empty ones."""
    totals = {str(state): 0 for state in JobState}
    for tasks in counts.values():
        for states in tasks.values():
            for state, n in states.items():
                totals[state] += n
    return totals


def by_queue(counts: Counts) -> dict[str, dict[str, int]]:
    totals: dict[str, dict[str, int]] = {}
    for queue, tasks in counts.items():
        total = totals.setdefault(queue, {})
        for states in tasks.values():
            for state, n in states.items():
                total[state] = total.get(state, 0) + n
    return totals
