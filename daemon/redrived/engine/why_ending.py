"""Why a job that is being ended is still there: who wants it, since when, what comes next; pure."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from redrive.deciding.because import spell
from redrive.instants import SECOND, iso
from redrived.processes.stuck import stuck_hint, stuck_words

# What is being done to it, and what becomes of it then.
_WORDS = {
    "cancel": ("cancelled", "it is cancelled"),
    "kill": ("killed", "it is cancelled"),
    "restart": ("restarted", "it runs again"),
    "drain": ("interrupted", "it goes back at no cost"),
    "timeout": ("ended for its timeout", "its policy decides"),
    "stalled": ("ended for its silence", "its policy decides"),
    "log_limit": ("ended for its output", "its policy decides"),
    "lost": ("ended here", "another attempt goes on"),
}
_ENDED = ("ended", "its policy decides")


class BeingEnded(Struct, frozen=True, kw_only=True):
    """What is known of an end that is under way."""

    why: str = ""  # an `Ending`; "" when its worker is ended for reasons of its own
    by: str | None = None
    since: int | None = None  # an instant; None when another node knows
    grace: float = 0.0  # seconds from then until SIGKILL
    is_call: bool = False  # there is no process to be killed
    unkillable: tuple[int, ...] = ()


def ending(end: BeingEnded, now: int) -> tuple[str, str, dict[str, Any], str]:
    """Code, words, values, what to do."""
    done, then = _WORDS.get(end.why, _ENDED)
    asked = f"it is being {done}" + (f" by {end.by}" if end.by else "")
    asked += f" since {iso(end.since)}" if end.since is not None else ""
    known = {"ending": end.why, "by": end.by, "since": end.since and iso(end.since)}
    saw: dict[str, Any] = {name: value for name, value in known.items() if value}
    if end.unkillable:
        pids = end.unkillable
        text = f"{stuck_words(pids)}: {asked}; once that is gone, {then}"
        return "unkillable", text, {**saw, "unkillable": list(pids)}, stuck_hint(pids)
    return "ending", f"{asked}; {_next(end, now)}, then {then}", saw, ""


def _next(end: BeingEnded, now: int) -> str:
    if end.is_call:
        return "its call is given up"
    if end.since is None:
        return "its node ends its processes"
    left = end.grace - (now - end.since) / SECOND
    if left > 0:
        return f"SIGKILL follows in {spell(left)}"
    return "SIGKILL was sent and its processes are about to go"
