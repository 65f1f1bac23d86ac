"""Verdicts in words: one sentence about what happened and what follows from it."""

from __future__ import annotations

from redrive.rules import Classification, Evidence

# From which size on a unit is used, and how many seconds it has.
_UNITS = ((2 * 86400, 86400, "d"), (2 * 3600, 3600, "h"), (120, 60, "min"), (0, 1, "s"))
_SEEN_BY_THE_SUPERVISOR = {"lost": "was lost", "stalled": "stalled", "timeout": "ran out of time"}


def what_happened(evidence: Evidence, found: Classification) -> str:
    """`failed with HTTP 503 (service_unavailable, transient)`, `failed with exit 3 (unknown)`."""
    kind = dict.fromkeys((found.error_type, found.category))
    return f"{_how(evidence)} ({', '.join(kind)})"


def _how(evidence: Evidence) -> str:
    if evidence.kind is not None:
        return _SEEN_BY_THE_SUPERVISOR[evidence.kind]
    if evidence.status is not None:
        return f"failed with HTTP {evidence.status}"
    if evidence.signal is not None:
        return f"was ended by {evidence.signal}" + " (out of memory)" * evidence.oom
    if evidence.exit_code is not None:
        return f"failed with exit {evidence.exit_code}"
    if evidence.exception:
        return f"failed with {evidence.exception[0].rpartition('.')[2]}"
    return "failed"


def spell(seconds: float) -> str:
    """`10 s`, `1.5 h`: about how long, in the unit a person would use."""
    for at_least, unit_seconds, unit in _UNITS:
        if seconds >= at_least:
            return f"{seconds / unit_seconds:.3g} {unit}"
    return f"{seconds:.3g} s"
