"""What a policy's conditions say of a failed attempt.

`stop_when` is asked first, and when it holds, `retry_when` is not asked at all. A condition
that fails says nothing, but never silently: its error is handed on.
"""

from __future__ import annotations

from msgspec import Struct

from redrive.conditions import ConditionFailed, compile_condition
from redrive.deciding.facts import Facts, Failed
from redrive.models import Json

LONGEST_ERROR = 8 * 1024  # characters of a message that conditions see, its end
LONGEST_SEEN = 200  # characters of a value that are kept with the decision

# Kept with every decision that had them; conditions add what they ask about.
_TELLING = (
    "attempt",
    "max_attempts",
    "category",
    "error_type",
    "status_code",
    "exit_code",
    "signal",
    "retry_after",
)


class Answers(Struct, frozen=True, kw_only=True):
    """The conditions' answers (None: not asked, or failed) and the values at hand."""

    stop: bool | None
    retry: bool | None
    saw: dict[str, Json]
    errors: list[str]


def ask(facts: Facts, failed: Failed) -> Answers:
    """Ask the policy's `stop_when`, then its `retry_when`."""
    known = _known(facts, failed)
    saw = {name: known[name] for name in _TELLING if known[name] is not None}
    errors: list[str] = []

    def answer(name: str, text: str | None) -> bool | None:
        if text is None:
            return None
        condition = compile_condition(text)
        saw.update({asked: _short(known[asked]) for asked in condition.names & known.keys()})
        held: bool | None = None
        try:
            held = condition.holds(known)
        except ConditionFailed as failure:
            errors.append(f"{name}: {failure.message}")
        saw[name] = held
        return held

    stop = answer("stop_when", facts.policy.stop_when)
    retry = None if stop else answer("retry_when", facts.policy.retry_when)
    return Answers(stop=stop, retry=retry, saw=saw, errors=errors)


def _known(facts: Facts, failed: Failed) -> dict[str, Json]:
    """What conditions may speak of, under its names."""
    evidence, found = failed.evidence, failed.classification
    return {
        "result": None,
        "data": None,
        "args": {},
        "job": None,
        "queue": None,
        "run": None,
        "step": None,
        "batch": None,
        **facts.known,
        "error": evidence.message[-LONGEST_ERROR:],
        "error_type": found.error_type,
        "category": found.category,
        "exception": evidence.exception[0] if evidence.exception else None,
        "status_code": evidence.status,
        "exit_code": evidence.exit_code,
        "signal": evidence.signal,
        "retry_after": failed.retry_after or None,
        "attempt": facts.attempts,
        "max_attempts": facts.max_attempts,
        "lost": facts.lost + failed.was_lost,
        "task": evidence.task,
        "stage": evidence.stage,
    }


def _short(value: Json) -> Json:
    match value:
        case None | bool() | int() | float():
            return value
        case _:
            return str(value)[:LONGEST_SEEN]
