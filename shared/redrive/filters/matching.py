"""Whether a job fits a filter: in memory, and pure.

The store answers the same question in SQL (`redrived.store.filtering`); this is the one
that says what the answer is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import ge, gt, le, lt
from typing import cast

import msgspec

from redrive.clock import SECOND, to_datetime
from redrive.filters.terms import (
    ARGUMENT,
    KEYS,
    SCREEN_STATES,
    Compare,
    Equal,
    Filter,
    Glob,
    Kind,
    Match,
    Term,
    Text,
)
from redrive.lifecycle import LEASED, QUEUED, WAITING
from redrive.models import Job, Json

COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {">": gt, ">=": ge, "<": lt, "<=": le}
_LOWER = {capital: capital + 32 for capital in range(ord("A"), ord("Z") + 1)}

_ABSENT = object()


def matches(filter: Filter, job: Job, now: int) -> bool:
    """Whether the filter lets the job through at the instant `now`."""
    return lets_through(filter, lambda term: _holds(term, job, now))


def lets_through(filter: Filter, holds: Callable[[Term], bool]) -> bool:
    """Whether a filter does, by what holds of its terms before they are turned round."""
    return all(
        any(holds(term) != term.negated for term in alternatives)
        for alternatives in filter.alternatives()
    )


def json_text(value: Json) -> str:
    """JSON as the store keeps it."""
    return msgspec.json.encode(value).decode()


def fold(text: str) -> str:
    """Text as free text is compared: A to Z are small, as databases do it without a locale."""
    return text.translate(_LOWER)


def day_of(instant: int) -> str:
    """The day of an instant as the language writes it, by UTC wherever the reader is."""
    return to_datetime(instant).date().isoformat()


def escaped(text: str) -> str:
    """Text as it stands within the quotes of JSON."""
    return json_text(text)[1:-1]


def argument_globs(word: Glob) -> tuple[Glob, Glob]:
    """The JSON of arguments that a word stands for: as a string, and as it is written."""
    parts = [escaped(part) for part in word]
    parts[0] = '"' + parts[0]
    parts[-1] += '"'
    return tuple(parts), word


def _holds(term: Term, job: Job, now: int) -> bool:
    match term:
        case Text(glob=glob):
            return _contains(job, glob)
        case Match(key=key, words=words) if key.startswith(ARGUMENT):
            text = _argument(job.args, key)
            globs = [glob for word in words for glob in argument_globs(word)]
            return text is not None and any(fits(glob, text) for glob in globs)
        case Match(key="state", words=words):
            return any(_is_in_state(word, job, now) for (word,) in words)
        case Match(key=key, words=words):
            text = _text(key, job)
            folded = fold if key == "error" else str
            return text is not None and any(
                fits(tuple(map(folded, word)), folded(text)) for word in words
            )
        case Equal(key=key, amounts=amounts):
            amount = _amount(key, job, now)
            unit = SECOND if KEYS[key] is Kind.SPAN else 1
            return amount is not None and any(least <= amount < least + unit for least in amounts)
        case Compare(key=key, operator=operator, amount=limit):
            amount = _amount(key, job, now)
            return amount is not None and COMPARISONS[operator](amount, limit)


def _contains(job: Job, glob: Glob) -> bool:
    plain = [job.task]
    if job.error is not None:
        plain += [job.error.error_type, job.error.message, job.error.user_message]
    anywhere = ("", *map(fold, glob), "")
    in_json = ("", *(fold(escaped(part)) for part in glob), "")
    return any(fits(anywhere, fold(text)) for text in plain) or fits(
        in_json, fold(json_text(job.args))
    )


def fits(glob: Glob, text: str) -> bool:
    """Whether the text is these parts in their order, with anything between them."""
    if len(glob) == 1:
        return text == glob[0]
    first, *between, last = glob
    if not text.startswith(first):
        return False
    place = len(first)
    for part in between:
        found = text.find(part, place)
        if found < 0:
            return False
        place = found + len(part)
    return text.endswith(last) and place <= len(text) - len(last)


def _is_in_state(word: str, job: Job, now: int) -> bool:
    match word:
        case "held":
            return job.held
        case "scheduled":
            return job.state is QUEUED and _due(job, now) > now
        case _:
            return job.state == SCREEN_STATES.get(word, word)


def _text(key: str, job: Job) -> str | None:
    match key:
        case "error":
            return job.error.error_type if job.error else None
        case "group":
            return job.error.fingerprint if job.error else None
        case "held":
            return "yes" if job.held else "no"
        case "day":
            return None if job.finished_at is None else day_of(job.finished_at)
        case _:
            text: str | None = getattr(job, key)
            return text


def _argument(args: Json, key: str) -> str | None:
    value = args
    for name in key.removeprefix(ARGUMENT).split("."):
        if not isinstance(value, dict):
            return None
        value = cast("dict[str, Json]", value).get(name, _ABSENT)
    return None if value is _ABSENT else json_text(value)


def _amount(key: str, job: Job, now: int) -> int | None:
    match key:
        case "attempt":
            return job.attempts
        case "age":
            return now - job.created_at
        case "duration":
            ended = now if job.state is LEASED else job.finished_at
            return None if job.started_at is None or ended is None else ended - job.started_at
        case "next":
            return _due(job, now) - now if job.state in WAITING else None
        case _:
            amount: int = getattr(job, key)
            return amount


def _due(job: Job, now: int) -> int:
    return now if job.available_at is None else job.available_at
