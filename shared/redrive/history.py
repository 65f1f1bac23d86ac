"""What the event log says of a job: its state is the fold of its events, and so is its past."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from redrive.lifecycle import JobState
from redrive.models import Attempt, Decision, Event, recorded_error

# How an attempt ended, by the event that says so.
_OUTCOMES = {
    "action_completed": "done",
    "action_error": "failed",
    "action_stalled": "stalled",
    "action_lost": "lost",
    "action_timeout": "timeout",
    "job_snoozed": "snoozed",
    "job_interrupted": "interrupted",
    "job_cancelled": "cancelled",
    "job_killed": "killed",
    "job_restarted": "restarted",
}
_NOTICED = frozenset({"stalled", "lost", "timeout"})  # said before the attempt is over


def fold_state(events: Iterable[Event]) -> tuple[JobState | None, int]:
    """The state and attempts a job has after these events; those of its row, or a test fails.

    One thing is not in the log: a job in a worker's hand that has not begun is leased in its
    row, and still waiting by its events. It was never executed and may go back unnoticed.
    """
    state: JobState | None = None
    attempts = 0
    for event in events:
        if event.state is not None:
            state = JobState(event.state)
        if event.attempts is not None:
            attempts = event.attempts
    return state, attempts


def history(events: Sequence[Event], executions: int = 0, life: int = 1) -> list[Attempt]:
    """The executions that these events tell of, oldest first, over all lives of a job.

    `executions` is how many there were before them, `life` the life in which they begin.
    """
    past: list[Attempt] = []
    for event in events:
        if event.type == "job_requeued":
            life += 1
        elif event.type == "action_started":
            past.append(
                Attempt(
                    execution=executions + len(past) + 1,
                    attempt=event.attempt or 0,
                    life=life,
                    started_at=event.at,
                    node=event.data.get("node"),
                )
            )
        elif past:
            past[-1] = _with(past[-1], event)
    return past


def _with(attempt: Attempt, event: Event) -> Attempt:
    changes: dict[str, Any] = {}
    outcome = _OUTCOMES.get(event.type)
    if outcome is not None and attempt.outcome in (None, *_NOTICED):
        changes["ended_at"] = event.at
        # A noticed stall is followed by the error it amounts to; the first word is the better.
        if attempt.outcome is None:
            changes["outcome"] = outcome
    if "error" in event.data:
        changes["error"] = recorded_error(event.data["error"])
    if "decision" in event.data:
        changes["decision"] = msgspec.convert(event.data["decision"], Decision)
    for name in ("metrics", "log", "result_note"):
        if name in event.data:
            changes[name] = event.data[name]
    return msgspec.structs.replace(attempt, **changes) if changes else attempt
