"""What can be said of a step of a run.

A step that has a job is `live`, then `retrying` from its first failure on, until that job ends.
What the job itself is in says more, and readers are shown that.
"""

from __future__ import annotations

from enum import StrEnum


class StepState(StrEnum):
    WAITING = "waiting"  # for the steps before it
    GATED = "gated"  # for its batch
    CLEARING = "clearing"  # its data is cleared before it is run again
    LIVE = "live"
    RETRYING = "retrying"
    DONE = "done"
    DEAD = "dead"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"


class RunState(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


ACTIVE = frozenset({StepState.LIVE, StepState.RETRYING})
UNSETTLED = ACTIVE | {StepState.WAITING, StepState.GATED, StepState.CLEARING}
BROKEN = frozenset({StepState.DEAD, StepState.CANCELLED})
