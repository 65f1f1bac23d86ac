"""What a verdict is made from: how an attempt ended, and where its job stands.

Whoever saw the attempt end gathers these; they hold instants, never a clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from redrive.lifecycle import JobState
from redrive.models import Json
from redrive.policy import RetryPolicy
from redrive.rules import Classification, Evidence


class Succeeded(Struct, frozen=True):
    """It did its work."""


class Failed(Struct, frozen=True):
    """It failed, was lost, stalled or ran out of time."""

    classification: Classification
    evidence: Evidence

    @property
    def was_lost(self) -> bool:
        return self.evidence.kind == "lost"

    @property
    def retry_after(self) -> float:
        """What the other side, or the handler, asked to wait at least."""
        said = self.evidence.said
        return max(self.evidence.retry_after or 0.0, (said and said.retry_after) or 0.0)


class Snoozed(Struct, frozen=True):
    """The handler wants to be asked again at `until`."""

    until: int


Ended = Succeeded | Failed | Snoozed


class Facts(Struct, frozen=True, kw_only=True):
    """All that a verdict may depend on."""

    ended: Ended
    now: int
    roll: float  # in [0, 1): the luck that jitter needs
    leased_from: JobState  # queued or retry
    life_started_at: int  # when the first attempt of this life began
    attempts: int  # of this life, this one included
    max_attempts: int
    lost: int = 0  # of this life, this one not included
    max_lost: int = 3
    unknown: int = 0  # earlier failures of this life that nobody could classify
    policy: RetryPolicy
    on_lost: Literal["retry", "fail", "hold"] = "retry"
    known: Mapping[str, Json] = {}  # what conditions may ask besides: result, data, args, run
