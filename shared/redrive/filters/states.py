"""The states a job can be in if a filter lets it through: what need not be looked at at all."""

from __future__ import annotations

from redrive.filters.terms import SCREEN_STATES, Compare, Equal, Filter, Match, Term
from redrive.lifecycle import DONE, QUEUED, WAITING, JobState

EVERY = frozenset(JobState)
_NOT_DONE = EVERY - {DONE}
_IN_PART = {"scheduled": frozenset({QUEUED}), "held": WAITING}  # words for some jobs of a state


def possible_states(filter: Filter) -> frozenset[JobState]:
    """Perhaps too many, never too few."""
    return EVERY.intersection(*map(_of_any, filter.alternatives()))


def is_of_states_alone(alternatives: list[Term]) -> bool:
    """Whether `possible_states` says all there is to say of them."""
    return all(
        isinstance(term, Match)
        and term.key == "state"
        and not any(word in _IN_PART for (word,) in term.words)
        for term in alternatives
    )


def _of_any(alternatives: list[Term]) -> frozenset[JobState]:
    return frozenset[JobState]().union(*map(_of, alternatives))


def _of(term: Term) -> frozenset[JobState]:
    match term:
        case Match(key="state", words=words, negated=True):
            return EVERY.difference(*(_states(word) for (word,) in words if word not in _IN_PART))
        case Match(key="state", words=words):
            return frozenset[JobState]().union(*(_states(word) for (word,) in words))
        case Match(key="held", words=words, negated=negated):
            other = "yes" if negated else "no"
            return EVERY if (other,) in words else WAITING
        case Match(key="error" | "group" | "reason", negated=False):
            return _NOT_DONE  # a success takes back what was said of failures
        case Equal(key="next", negated=False) | Compare(key="next", negated=False):
            return WAITING
        case _:
            return EVERY


def _states(word: str) -> frozenset[JobState]:
    return _IN_PART.get(word) or frozenset({SCREEN_STATES.get(word) or JobState(word)})
