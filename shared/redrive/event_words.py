"""What an event says, in one line for people; the whole of it is in its JSON."""

from __future__ import annotations

import json

from redrive.models import Event, Json

_LONGEST = 120  # characters of one value
_SAID_BY_A_DECISION = frozenset({"decision", "delay", "available_at", "reason"})
_TOO_LONG = frozenset({"evidence", "log"})


def words_of(event: Event) -> str:
    """`because` first, then the error, then whatever else its data has."""
    match event.data.get("decision"):
        case {"because": str(because)}:
            said, left_out = [because], _SAID_BY_A_DECISION | _TOO_LONG
        case _:
            said, left_out = [], _TOO_LONG
    said += [
        f"{name} {_short(value)}"
        for name, value in event.data.items()
        if name not in left_out and value is not None
    ]
    return ", ".join(said)


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
