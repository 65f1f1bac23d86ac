"""The records everybody speaks of: jobs, runs, events, errors.

Frozen and keyword-only: a change is a new record. The field names are the JSON keys that
scripts rely on; instants are microseconds here and ISO 8601 wherever a person or a script
reads them (`plain`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal, get_type_hints

import msgspec
from msgspec import Struct

from redrive.instants import Instant, from_iso, iso
from redrive.lifecycle import JobState

Category = Literal["transient", "permanent", "unknown"]
Json = Any  # whatever JSON can hold


class Record(Struct, frozen=True, kw_only=True):
    """Something that is told, never changed."""


class ErrorRecord(Record, frozen=True, kw_only=True):
    """Why an attempt failed, for machines and for people."""

    error_type: str
    category: Category
    message: str  # raw, as the task said it
    user_message: str = ""
    guidance: str = ""
    stage: str | None = None  # the step of the run, else the task
    timestamp: Instant = 0
    retry_count: int = 0
    traceback: str | None = None
    fingerprint: str = ""
    rule: str = ""  # which rule classified it

    @property
    def decided_by(self) -> str:
        """The rule as people are told of it."""
        return "no rule fits it" if self.rule == "unknown" else self.rule


class Budgets(Record, frozen=True, kw_only=True):
    """What has been used up, kept apart so that one never eats the other."""

    attempts: int = 0
    max_attempts: int = 1
    lost: int = 0
    max_lost: int = 3
    manual_retries: int = 0
    max_manual_retries: int = 5
    interruptions: int = 0
    snoozes: int = 0


class Decision(Record, frozen=True, kw_only=True):
    """What was decided after an attempt, by which rule, seeing what."""

    retry: bool
    delay: float | None = None
    rule: str = ""
    because: str = ""
    saw: dict[str, Json] = {}


class Attempt(Record, frozen=True, kw_only=True):
    """One execution in a job's history."""

    execution: int  # 1…n over all lives
    attempt: int  # within its life
    life: int
    started_at: Instant | None = None
    ended_at: Instant | None = None
    # done | failed | lost | stalled | timeout | snoozed | interrupted | cancelled | killed |
    # restarted; None: it is running.
    outcome: str | None = None
    error: ErrorRecord | None = None
    metrics: dict[str, Json] | None = None
    decision: Decision | None = None
    log: str | None = None
    node: str | None = None
    result_note: str | None = None  # why its result is not kept, or not all of it


class Progress(Record, frozen=True, kw_only=True):
    done: float | None = None
    total: float | None = None
    text: str | None = None


class Job(Record, frozen=True, kw_only=True):
    id: int
    task: str
    queue: str
    operation: str | None = None
    mode: str | None = None
    priority: int = 0
    state: JobState = JobState.QUEUED
    held: bool = False
    reason: str | None = None
    attempts: int = 0
    max_attempts: int = 1
    life: int = 1
    lease: int = 0
    available_at: Instant | None = None
    created_at: Instant = 0
    started_at: Instant | None = None
    finished_at: Instant | None = None
    last_attempt_at: Instant | None = None
    heartbeat_at: Instant | None = None
    scheduled_for: Instant | None = None
    node: str | None = None
    error: ErrorRecord | None = None
    result: Json = None
    metrics: dict[str, Json] | None = None
    progress: Progress | None = None
    budgets: Budgets | None = None
    run: str | None = None  # "r7"
    step: str | None = None
    batch: str | None = None
    unique: str | None = None
    args: dict[str, Json] = {}


class Event(Record, frozen=True, kw_only=True):
    """One line of the log; never changed, never missing."""

    seq: int
    at: Instant
    type: str
    job: int | None = None
    run: str | None = None
    attempt: int | None = None
    state: str | None = None
    attempts: int | None = None
    data: dict[str, Json] = {}


class StepState(Record, frozen=True, kw_only=True):
    name: str
    job: int | None = None
    state: str = "waiting"
    attempts: int = 0
    max_attempts: int = 1
    last_attempt_at: Instant | None = None
    scheduled_for: Instant | None = None
    result: Json = None
    error: ErrorRecord | None = None
    why: str | None = None


class Run(Record, frozen=True, kw_only=True):
    id: str  # "r7"
    pipeline: str
    version: int = 1
    batch: str | None = None
    key: str | None = None
    state: Literal["running", "done", "failed", "cancelled"] = "running"
    status: str = ""
    args: dict[str, Json] = {}
    metrics: dict[str, Json] | None = None
    last_completed: str | None = None
    created_at: Instant = 0
    finished_at: Instant | None = None
    steps: list[StepState] = []


def recorded_error(data: dict[str, Any]) -> ErrorRecord:
    """An error as the event log holds it, the way scripts read it."""
    told = data.get("timestamp")
    at = from_iso(told) if isinstance(told, str) else told or 0
    return msgspec.convert({**data, "timestamp": at}, ErrorRecord)


def plain(record: Struct) -> dict[str, Any]:
    """A record as JSON shows it: instants as ISO 8601, nested records likewise."""
    instants = _instants(type(record))
    return {
        name: _iso(value) if name in instants else _plain_value(value)
        for name, value in msgspec.structs.asdict(record).items()
    }


def _iso(value: int | list[int] | None) -> str | list[str] | None:
    if isinstance(value, list):
        return [iso(each) for each in value]
    return None if value is None else iso(value)


def _plain_value(value: Any) -> Any:
    match value:
        case Struct():
            return plain(value)
        case [*items]:
            return [_plain_value(item) for item in items]
        case _:
            return value


@lru_cache
def _instants(kind: type[Struct]) -> frozenset[str]:
    return frozenset(
        name
        for name, hint in get_type_hints(kind, include_extras=True).items()
        if _is_instant(hint)
    )


def _is_instant(hint: object) -> bool:
    return any(
        isinstance(mark, msgspec.Meta) and (mark.extra or {}).get("instant")
        for part in (hint, *getattr(hint, "__args__", ()))
        for mark in getattr(part, "__metadata__", ())
    )
