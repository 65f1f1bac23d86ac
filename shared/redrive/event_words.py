"""What an event says, in one line for people; the whole of it is in its JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

from redrive.lifecycle import word_of
from redrive.models import Event, Json

_LONGEST = 120  # characters of one value
_SAID_BY_A_DECISION = frozenset({"decision", "delay", "available_at", "reason"})
_CLAUSES = frozenset({"how", "result_note"})
_CLAUSES_OF = frozenset({("job_interrupted", "by")})  # not who has done it, but what was the case
_TOO_LONG = frozenset({"evidence", "log"})


def words_of(event: Event) -> str:
    """`because` first, then the error, then whatever else its data has."""
    match event.data.get("decision"):
        case {"because": str(because)}:
            said, left_out = [because], _SAID_BY_A_DECISION | _TOO_LONG
        case _:
            said, left_out = [], _TOO_LONG
    said += [
        _named(event.type, name, value)
        for name, value in event.data.items()
        if name not in left_out and value is not None
    ]
    return ", ".join(said)


def skips_in_words(skips: Mapping[str, int]) -> str:
    """Why a redrive skipped jobs: `2 skipped: it was requeued less than 60 s ago`."""
    return "; ".join(f"{n} skipped: {why}" for why, n in skips.items())


def _named(kind: str, name: str, value: Json) -> str:
    """`reason lost`; nothing is set before what is a sentence by itself."""
    if name == "was" and isinstance(value, str):
        value = word_of(value)
    if name == "skips" and isinstance(value, dict):
        return _short(skips_in_words(cast("dict[str, int]", value)))
    is_clause = name in _CLAUSES or (kind, name) in _CLAUSES_OF
    return _short(value) if is_clause else f"{name} {_short(value)}"


def _short(value: Json) -> str:
    match value:
        case {"error_type": str(kind), "message": str(message)}:
            text = f"{kind}: {message}"
        case str():
            text = value
        case _:
            text = json.dumps(value, ensure_ascii=False)
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
