"""The states of a job and the moves between them: one table, asked by everything else."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class JobState(StrEnum):
    QUEUED = "queued"  # not executed in this life
    LEASED = "leased"  # in a worker's hand, or executing
    RETRY = "retry"  # failed, waiting for `available_at`
    DONE = "done"
    DEAD = "dead"  # no more automatic attempts
    CANCELLED = "cancelled"


class Reason(StrEnum):
    """Why a job is dead."""

    EXHAUSTED = "exhausted"
    PERMANENT = "permanent"
    STOP_WHEN = "stop_when"
    RETRY_WHEN = "retry_when"
    UNKNOWN = "unknown"
    POISON = "poison"
    ON_LOST = "on_lost"
    EXPIRED = "expired"


class Move(StrEnum):
    LEASE = "lease"
    COMPLETE = "complete"
    RETRY = "retry"
    BURY = "bury"
    GIVE_BACK = "give_back"  # a drain, a snooze, a job in hand that never began
    CANCEL = "cancel"
    REQUEUE = "requeue"
    RUN_NOW = "run_now"
    HOLD = "hold"
    RELEASE = "release"
    DISCARD = "discard"


QUEUED, LEASED, RETRY, DONE, DEAD, CANCELLED = JobState

WAITING = frozenset({QUEUED, RETRY})
FINISHED = frozenset({DONE, DEAD, CANCELLED})
LIVE = WAITING | {LEASED}

_WORDS: Mapping[str, str] = MappingProxyType({LEASED: "running", RETRY: "retrying"})


def word_of(state: str) -> str:
    """A state as people read it, on every screen and in every sentence."""
    return _WORDS.get(state, state)


# Where each move may start and where it may end; `discard` ends in no state at all.
MOVES: Mapping[Move, tuple[frozenset[JobState], frozenset[JobState]]] = MappingProxyType(
    {
        Move.LEASE: (WAITING, frozenset({LEASED})),
        Move.COMPLETE: (frozenset({LEASED}), frozenset({DONE})),
        Move.RETRY: (frozenset({LEASED}), frozenset({RETRY})),
        Move.BURY: (frozenset({LEASED, RETRY, QUEUED}), frozenset({DEAD})),
        Move.GIVE_BACK: (frozenset({LEASED}), WAITING),
        Move.CANCEL: (LIVE, frozenset({CANCELLED})),
        Move.REQUEUE: (frozenset({DEAD, CANCELLED}), frozenset({QUEUED})),
        Move.RUN_NOW: (WAITING, WAITING),
        Move.HOLD: (WAITING, WAITING),
        Move.RELEASE: (WAITING, WAITING),
        Move.DISCARD: (frozenset({DEAD, CANCELLED}), frozenset()),
    }
)


def allowed(move: Move, state: JobState) -> bool:
    """Whether `move` may be made from `state`."""
    return state in MOVES[move][0]
