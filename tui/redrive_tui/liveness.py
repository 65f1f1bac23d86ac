"""Whether a node is there: told by the age of its last beat, never by what it said last."""

from __future__ import annotations

from typing import Literal

from redrive.protocol.rows import NodeRow
from redrive_tui.formatting import seconds_between

LATE_AFTER, LOST_AFTER = 5.0, 15.0  # seconds without a beat

Liveness = Literal["fresh", "late", "lost", "stopped"]


def liveness(node: NodeRow, now: int) -> Liveness:
    if node.state == "stopped":
        return "stopped"
    age = seconds_between(node.beat_at, now)
    if age >= LOST_AFTER:
        return "lost"
    return "late" if age >= LATE_AFTER else "fresh"
