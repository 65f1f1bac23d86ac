"""What answers are made of: the rows of lists, and the parts of what is shown whole."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from redrive.instants import Instant


class QueueRow(Struct, frozen=True, kw_only=True):
    name: str
    priority: int = 0
    reserved: int = 0
    concurrency: int | None = None
    rate: str | None = None
    paused: bool = False
    paused_by: str | None = None
    paused_at: Instant | None = None
    paused_why: str | None = None
    states: dict[str, int] = {}
    scheduled: int | None = None  # queued, for a time to come
    running: int = 0
    oldest_ready_at: Instant | None = None
    ready: int = 0  # queued, and waits for nothing but a slot
    held: int = 0  # queued or to be retried, once a person releases it
    of_paused_tasks: int = 0  # queued, and would be ready if its task were not paused
    retrying: int = 0  # to be retried, those held left out


class Pause(Struct, frozen=True, kw_only=True):
    kind: str
    name: str
    at: Instant
    by: str
    why: str | None = None


class PoolRow(Struct, frozen=True, kw_only=True):
    name: str
    workers: int
    busy: int
    trouble: str | None = None


class NodeRow(Struct, frozen=True, kw_only=True):
    name: str
    state: str  # up | draining | late | stopped | lost
    started_at: Instant
    beat_at: Instant
    version: str
    slots: int
    busy: int = 0
    cpu: float | None = None  # percent of the machine
    memory: int | None = None  # bytes used
    memory_total: int | None = None
    queues: list[str] = []
    pools: list[PoolRow] = []
    leader: bool = False


class Attention(Struct, frozen=True, kw_only=True):
    """Something an operator should know of, and where to look."""

    kind: str
    text: str
    where: str = ""  # a filter, or a name
    screen: str = "jobs"
    severity: Literal["warning", "error"] = "warning"


class DueRow(Struct, frozen=True, kw_only=True):
    """What falls due: retries and scheduled jobs by minute and queue, and schedules."""

    at: Instant
    kind: Literal["retry", "scheduled", "schedule", "gate"]
    n: int
    name: str


class GroupRow(Struct, frozen=True, kw_only=True):
    """Failed jobs of one error; or of one task, queue, node or day, told by their main error."""

    fingerprint: str
    error_type: str
    category: str
    signature: str
    dead: int
    retrying: int
    first_at: Instant
    last_at: Instant
    tasks: dict[str, int]
    queues: dict[str, int]
    sample: int
    user_message: str = ""
    guidance: str = ""
    trend: list[int] = []  # the last 24 hours
    name: str = ""  # of the task, queue, node or day that it is about; "": of an error
    errors: int = 1  # how many different ones


class GateRow(Struct, frozen=True, kw_only=True):
    step: str
    round: int
    unsettled: int
    waiting: int
    opens_at: Instant | None = None
    opened_at: Instant | None = None


class BatchRow(Struct, frozen=True, kw_only=True):
    name: str
    pipeline: str
    created_at: Instant
    runs: int
    running: int
    done: int
    failed: int
    cancelled: int
    phases: dict[str, dict[str, int]] = {}  # step → state → count
    gates: list[GateRow] = []
    forgotten: int = 0  # of `runs`, those that ended so long ago that they cannot be listed


class FireRow(Struct, frozen=True, kw_only=True):
    slot: Instant
    at: Instant
    outcome: str  # fired | skipped | missed
    job: int | None = None
    run: str | None = None
    state: str | None = None
    took: float | None = None


class ScheduleRow(Struct, frozen=True, kw_only=True):
    name: str
    what: str  # "task x" | "pipeline y"
    words: str
    timezone: str
    next: list[Instant] = []
    last: list[FireRow] = []
    missed: str = "once"
    overlap: str = "skip"
    paused: bool = False
    paused_by: str | None = None
    paused_at: Instant | None = None
    paused_why: str | None = None


class RedriveRow(Struct, frozen=True, kw_only=True):
    id: int
    state: str
    created_at: Instant
    by: str
    where: str | None
    total: int
    requeued: int
    skipped: int
    succeeded: int
    failed: int
    options: dict[str, Any] = {}
    finished_at: Instant | None = None
    why: str | None = None
    skips: dict[str, int] = {}  # the most common reasons for which jobs were skipped, how many


class PipelineRow(Struct, frozen=True, kw_only=True):
    name: str
    version: int
    created_at: Instant
    steps: list[str]
    origin: str  # config | playbook


class Plan(Struct, frozen=True, kw_only=True):
    """One attempt of the retry timeline that has not happened yet."""

    attempt: int
    at: Instant
    approximate: bool = False
    last: bool = False


class RunPlan(Struct, frozen=True, kw_only=True):
    """What a verb would do to a run."""

    id: str
    steps: list[str] = []  # those that would be run again, ended, held, ...
    refused: str | None = None  # why it would do nothing


class Usage(Struct, frozen=True, kw_only=True):
    """What the running attempt uses."""

    pids: list[int]
    cpu: float
    memory: int
    at: Instant


class PolicyRow(Struct, frozen=True, kw_only=True):
    attempt: int
    delay: float
    earliest: float
    latest: float


class RuleChange(Struct, frozen=True, kw_only=True):
    job: int
    message: str
    was: str
    now: str
    rule: str


class Check(Struct, frozen=True, kw_only=True):
    name: str
    ok: bool
    text: str
    hint: str = ""


class OutboxRow(Struct, frozen=True, kw_only=True):
    """What an application asked for inside a transaction of its own."""

    ticket: str
    task: str
    by: str
    at: Instant
    outcome: str  # waiting | created | known (its unique key lived already) | refused
    job: int | None = None
    why: str | None = None
