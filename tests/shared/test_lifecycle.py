"""One table says which moves there are; here it is read back against S5."""

from __future__ import annotations

from itertools import pairwise

import pytest

from redrive.lifecycle import (
    CANCELLED,
    DEAD,
    DONE,
    LEASED,
    MOVES,
    QUEUED,
    RETRY,
    JobState,
    Move,
    allowed,
)


def test_the_trace_of_three_attempts_is_a_walk_through_the_table() -> None:
    walk = [QUEUED, LEASED, RETRY, LEASED, RETRY, LEASED, DEAD]
    for before, after in pairwise(walk):
        assert after in _reachable(before)


@pytest.mark.parametrize("state", list(JobState))
def test_only_waiting_jobs_are_leased(state: JobState) -> None:
    assert allowed(Move.LEASE, state) == (state in (QUEUED, RETRY))


@pytest.mark.parametrize("state", list(JobState))
def test_another_life_is_for_the_dead_and_the_cancelled(state: JobState) -> None:
    assert allowed(Move.REQUEUE, state) == (state in (DEAD, CANCELLED))


def test_what_is_done_stays_done() -> None:
    assert not any(allowed(move, DONE) for move in Move)


def test_every_state_but_the_last_ones_can_be_left_and_every_state_reached() -> None:
    reached = frozenset().union(*(ends for _, ends in MOVES.values()))
    assert reached == frozenset(JobState)
    assert all(_reachable(state) for state in JobState if state is not DONE)


def test_nothing_but_a_lease_starts_an_execution() -> None:
    starts = [move for move, (_, ends) in MOVES.items() if LEASED in ends]
    assert starts == [Move.LEASE]


def _reachable(state: JobState) -> frozenset[JobState]:
    """The states one move away."""
    return frozenset(end for starts, ends in MOVES.values() if state in starts for end in ends)
