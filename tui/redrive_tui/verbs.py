"""The verbs an operator has, and how much asking back each needs before it is done."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Literal

from redrive.lifecycle import LEASED, LIVE, MOVES, JobState, Move
from redrive.models import Record

SMALL = 50  # a set larger than this needs its number typed

RUNNING = frozenset({LEASED})


class Rung(IntEnum):
    """The confirmation ladder: look at once, act at once, ask, ask for the number."""

    AT_ONCE = 1
    ASK = 2
    TYPE_THE_NUMBER = 3


class Verb(Record, frozen=True, kw_only=True):
    """Something that can be done to jobs, or to a thing with a name."""

    name: str  # as the command line has it
    past: str  # "12 jobs requeued"
    of: Literal["job", "name"] = "job"
    states: frozenset[JobState] = frozenset()  # of the jobs it can be done to
    asks: bool = False  # even about a single one
    undone_by: str | None = None

    @property
    def label(self) -> str:
        return self.name.replace("-", " ")


VERBS: Mapping[str, Verb] = MappingProxyType(
    {
        verb.name: verb
        for verb in (
            Verb(name="requeue", past="requeued", states=MOVES[Move.REQUEUE][0]),
            Verb(name="run-now", past="due now", states=MOVES[Move.RUN_NOW][0]),
            Verb(name="cancel", past="cancelled", states=LIVE),
            Verb(name="restart", past="restarted", states=RUNNING, asks=True),
            Verb(name="kill", past="killed", states=RUNNING, asks=True),
            Verb(name="hold", past="held", states=MOVES[Move.HOLD][0], undone_by="release"),
            Verb(name="release", past="released", states=MOVES[Move.RELEASE][0], undone_by="hold"),
            Verb(name="discard", past="discarded", states=MOVES[Move.DISCARD][0], asks=True),
            Verb(name="pause", past="paused", of="name", undone_by="resume"),
            Verb(name="resume", past="resumed", of="name", undone_by="pause"),
            Verb(name="trigger", past="triggered", of="name"),
            Verb(name="drain", past="told to drain", of="name", asks=True),
            Verb(name="undo", past="undone", of="name"),
        )
    }
)


def rung(
    verb: Verb, number: int, *, protected: bool, whole: bool = False, running: bool = False
) -> Rung:
    """How much asking back `verb` on `number` things needs.

    `whole` says that the number is everything there is of its kind: a queue, a group. What is
    running is not stopped without a question, and a protected environment asks one step more
    than another would.
    """
    if number > SMALL or whole:
        return Rung.TYPE_THE_NUMBER
    step = Rung.ASK if number > 1 or verb.asks or running else Rung.AT_ONCE
    return Rung(step + 1) if protected else step


def applies(verb: Verb, state: JobState) -> bool:
    return not verb.states or state in verb.states
