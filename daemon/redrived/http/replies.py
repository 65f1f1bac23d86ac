"""What is answered over HTTP, as records: the OpenAPI document is made of them."""

from __future__ import annotations

from msgspec import Struct

from redrive.instants import Instant
from redrive.models import Attempt, Job, Json, Record


class Health(Record, frozen=True, kw_only=True):
    status: str


class JobsPage(Record, frozen=True, kw_only=True):
    jobs: list[Job]
    after: str | None = None  # where the next page begins; None: this was the last


class ShownJob(Job, frozen=True, kw_only=True):
    history: list[Attempt] = []
    next: str = ""  # what can be done now, in one sentence


class ActedOn(Record, frozen=True, kw_only=True):
    id: int
    done: bool = True
    state: str | None = None


class Timestamps(Record, frozen=True, kw_only=True):
    created_at: Instant | None = None
    started_at: Instant | None = None
    last_heartbeat: Instant | None = None
    last_attempt_at: Instant | None = None
    completed_at: Instant | None = None


class RunStatus(Record, frozen=True, kw_only=True):
    run_id: str
    status: str
    task_id: int | None = None
    retry_count: int = 0
    error_message: str | None = None
    error_traceback: str | None = None
    timestamps: Timestamps
    metrics: dict[str, Json] = {}


class RetryStats(Record, frozen=True, kw_only=True):
    total_retries: int
    runs_retried: int
    most_retries: int


class FailedRun(Record, frozen=True, kw_only=True):
    run_id: str
    status: str
    step: str | None = None
    error_type: str | None = None
    error_message: str | None = None
    finished_at: Instant | None = None


class RunMetrics(Record, frozen=True, kw_only=True):
    status_counts: dict[str, int]
    retry_stats: RetryStats
    avg_duration: float | None = None  # seconds, of runs that are done
    recent_failures: list[FailedRun] = []


class Problem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A refusal (RFC 9457)."""

    type: str
    title: str
    status: int
    code: str
    detail: str | None = None  # what to do about it
    retry_after: float | None = None  # seconds
