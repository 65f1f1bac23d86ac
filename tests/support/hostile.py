"""Everything from outside that a terminal might obey, in every place a daemon can put it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from support import incident
from support.recorded import Recorded

OSC_52 = "\x1b]52;c;b3duZWQ=\x07"
TITLE = "\x1b]0;owned\x07"
TEXT = f"[/red][bold {OSC_52}{TITLE}\x9b2J\x9d0;owned\x9c\x1b[2J\x1bc\x07\x08\r\n\x1b]8;;http://x\u202e日本e\u0301\u0301\u0301\u0301HOSTILE"

# Looked up by the console, or told apart by it: these keep their meaning.
KEPT = {"state", "kind", "type", "severity", "screen", "role", "colour", "epoch", "outcome"}


def hostile(record: Any, *, name: str = "") -> Any:
    """The same record with every text in it replaced, however deep it lies."""
    match record:
        case Struct():
            fields = {key: hostile(value, name=key) for key, value in asdict(record).items()}
            return type(record)(**fields)
        case list():
            return [hostile(each) for each in record]
        case dict():
            if name in ("states", "by_state", "phases"):
                return record
            return {key: hostile(value) for key, value in record.items()}
        case str() if name not in KEPT:
            return TEXT
        case _:
            return record


def source() -> Recorded:
    """The incident, as an attacker would have written it."""
    calm = incident.source()
    recorded = Recorded(hostile(calm.status), hostile(calm.welcome))
    recorded.jobs = hostile(calm.jobs)
    recorded.details = {id: hostile(reply) for id, reply in calm.details.items()}
    recorded.groups = hostile(calm.groups)
    recorded.runs = hostile(calm.runs)
    recorded.batches = hostile(calm.batches)
    recorded.schedules = hostile(calm.schedules)
    recorded.events = hostile(calm.events)
    recorded.log = f"{TEXT}\n".encode() * 50 + b"\xff\xfe\x9b2J\n" + b"x" * 1_000_000
    return recorded
