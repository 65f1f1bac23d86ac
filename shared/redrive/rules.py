"""What kind of failure was it? Evidence in, classification out.

The order of evidence is fixed: the config's `[[errors]]`, a verdict of the supervisor
(stalled, lost, timeout), what the handler said outright, the HTTP status, the exit code,
the signal, the text, the exception's type. The first that has something to say decides.
Whether the job is tried again is not decided here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Literal, TypeVar, cast

from msgspec import Struct

from redrive.builtin_patterns import PATTERNS
from redrive.builtin_rules import EXCEPTIONS, EXITS, KINDS, SIGNALS, SOON, STATUSES, Kind
from redrive.config.sections import ErrorRule
from redrive.models import Category, Json
from redrive.patterns import TAIL, Pattern, any_of, compile_pattern

__all__ = ["Classification", "Evidence", "Rulebook", "Said", "compile_pattern"]

T = TypeVar("T")

# Whom something was asked of is not what went wrong: an order may have the number 404.
_ADDRESS = re.compile(r"""(?:https?://|\burl: /)[^\s'"<>)]*""", re.IGNORECASE)
# Nor is what was expected of an answer, whose own status has been judged by then.
_EXPECTED = re.compile(r", expected \d{3}(?: or \d{3})*")


class Said(Struct, frozen=True, kw_only=True):
    """What a handler said outright, by raising Permanent or Transient."""

    category: Category
    type: str | None = None
    retry_after: float | None = None


class Evidence(Struct, frozen=True, kw_only=True):
    """All that is known about a failed attempt."""

    message: str = ""
    task: str | None = None
    stage: str | None = None
    kind: Literal["stalled", "lost", "timeout"] | None = None  # the supervisor's own verdict
    said: Said | None = None
    exception: tuple[str, ...] = ()  # with their modules, the raised class first, then its bases
    status: int | None = None  # HTTP
    exit_code: int | None = None
    signal: str | None = None  # "SIGKILL"
    oom: bool = False
    retry_after: float | None = None  # seconds, from the HTTP header
    traceback: str | None = None

    @property
    def in_words(self) -> str:
        """The message, or what was raised when it has none."""
        if self.message.strip() or not self.exception:
            return self.message
        return self.exception[0].rpartition(".")[2]


class Classification(Struct, frozen=True, kw_only=True):
    """What kind of failure it was, and the rule that says so."""

    category: Category
    error_type: str
    user_message: str
    guidance: str
    rule: str

    @property
    def should_retry(self) -> bool:
        return self.category != "permanent"


class Rulebook:
    """The config's rules, then the built-in ones."""

    def __init__(self, errors: Sequence[ErrorRule] = ()) -> None:
        self._configured = [_Configured(place, rule) for place, rule in enumerate(errors)]

    def classify(self, evidence: Evidence) -> Classification:
        for configured in self._configured:
            if configured.fits(evidence):
                return configured.classification
        if evidence.kind:
            return _known(evidence.kind, rule=evidence.kind)
        if evidence.said:
            return _outright(evidence.said, evidence)
        return _observed(evidence)

    def classify_text(self, text: str, task: str | None = None) -> dict[str, Json]:
        """What `redrive classify` says about a text that somebody met somewhere."""
        found = self.classify(Evidence(message=text, task=task))
        return {
            "category": found.category,
            "error_type": found.error_type,
            "message": text,
            "user_message": found.user_message,
            "guidance": found.guidance,
            "should_retry": found.should_retry,
            "rule": found.rule,
        }


class _Configured:
    """One `[[errors]]` entry; everything it names must fit."""

    def __init__(self, place: int, rule: ErrorRule) -> None:
        self._tasks = _listed(rule.task)
        self._exit_codes = _listed(rule.exit_code)
        self._signals = {f"SIG{name.upper().removeprefix('SIG')}" for name in _listed(rule.signal)}
        self._statuses = {str(status).lower() for status in _listed(rule.status)}
        self._exceptions = set(_listed(rule.exception))
        self._pattern = compile_pattern(rule.match) if rule.match else None
        self.classification = _classified(
            rule.type, rule.category, _rule_name(place, rule), rule.message, rule.guidance
        )

    def fits(self, evidence: Evidence) -> bool:
        return (
            (not self._tasks or evidence.task in self._tasks)
            and (not self._exit_codes or evidence.exit_code in self._exit_codes)
            and (not self._signals or evidence.signal in self._signals)
            and (not self._statuses or not self._statuses.isdisjoint(_spellings(evidence.status)))
            and (not self._exceptions or not self._exceptions.isdisjoint(_names(evidence)))
            and (not self._pattern or self._pattern.found_in(evidence.message))
        )


def _listed(value: T | list[T] | None) -> list[T]:
    match value:
        case None:
            return []
        case list():
            return cast(list[T], value)
        case _:
            return [value]


def _rule_name(place: int, rule: ErrorRule) -> str:
    """`errors[2] match "quota exceeded", status 503`."""
    named = [
        f"{field} {' or '.join(json.dumps(value, ensure_ascii=False) for value in _listed(given))}"
        for field in ("match", "exception", "status", "exit_code", "signal", "task")
        if (given := getattr(rule, field)) is not None
    ]
    return " ".join([f"errors[{place}]", ", ".join(named)]).rstrip()


def _spellings(status: int | None) -> tuple[str, ...]:
    return () if status is None else (str(status), f"{status // 100}xx")


def _names(evidence: Evidence) -> Iterator[str]:
    """Every class the exception is an instance of, with its module and without."""
    for name in evidence.exception:
        yield name
        yield name.rpartition(".")[2]


def _outright(said: Said, evidence: Evidence) -> Classification:
    """The handler names the category; the type it may leave to the rest of the evidence."""
    seen = _observed(evidence)
    guess = seen.error_type if seen.category == said.category else f"{said.category}_error"
    return _classified(said.type or guess, said.category, f"said {said.category}")


def _observed(evidence: Evidence) -> Classification:
    for witness in (_by_status, _by_exit_code, _by_signal, _by_text, _by_exception):
        if found := witness(evidence):
            return found
    return _known("unknown", rule="unknown")


def _by_status(evidence: Evidence) -> Classification | None:
    status = evidence.status or 0
    error_type = STATUSES.get(status) or STATUSES.get(status // 100)
    return _known(error_type, rule=f"http {status}") if error_type else None


def _by_exit_code(evidence: Evidence) -> Classification | None:
    if evidence.exit_code is None or evidence.exit_code not in EXITS:
        return None
    name, error_type = EXITS[evidence.exit_code]
    return _known(error_type, rule=f"exit {evidence.exit_code} ({name})")


def _by_signal(evidence: Evidence) -> Classification | None:
    if evidence.oom:
        return _known("out_of_memory", rule="out of memory")
    if evidence.signal is None:
        return None
    return _known(SIGNALS.get(evidence.signal, "killed"), rule=f"signal {evidence.signal}")


def _by_text(evidence: Evidence) -> Classification | None:
    text = _ADDRESS.sub("", evidence.message[-TAIL:])
    if evidence.status is not None:
        text = _EXPECTED.sub("", text)
    for error_type, pattern in _patterns():
        if pattern.found_in(text):
            return _known(error_type, rule=f"builtin pattern {error_type}")
    return None


def _by_exception(evidence: Evidence) -> Classification | None:
    for name in _names(evidence):
        if name in EXCEPTIONS:
            return _known(EXCEPTIONS[name], rule=f"exception {name}")
    return None


@cache
def _patterns() -> list[tuple[str, Pattern]]:
    return [(error_type, any_of(patterns)) for error_type, patterns in PATTERNS]


def _known(error_type: str, *, rule: str) -> Classification:
    return _classified(error_type, KINDS[error_type].category, rule)


def _classified(
    error_type: str,
    category: Category,
    rule: str,
    message: str | None = None,
    guidance: str | None = None,
) -> Classification:
    known = KINDS.get(error_type)
    if known is None or known.category != category:
        # The words of a built-in type promise a retry, or none: they must fit the category.
        words = error_type.replace("_", " ").replace("-", " ")
        known = Kind(category, words[:1].upper() + words[1:], SOON * (category == "transient"))
    return Classification(
        category=category,
        error_type=error_type,
        user_message=known.user_message if message is None else message,
        guidance=known.guidance if guidance is None else guidance,
        rule=rule,
    )
