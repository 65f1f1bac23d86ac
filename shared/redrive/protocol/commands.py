"""What operators and applications can have changed, and what comes back."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from redrive.instants import Instant
from redrive.protocol.envelope import Reply, Request
from redrive.protocol.queries import Hello

# Checked before the elements are read: an empty one is a byte on the wire and a hundred here.
AtMost10k = Meta(max_length=10_000)
AtMost100k = Meta(max_length=100_000)

# ---- new work ----------------------------------------------------------------------------


class JobOrder(Struct, frozen=True, kw_only=True):
    """One job to enqueue; what is left out comes from the task and the config."""

    args: dict[str, Any] = {}
    queue: str | None = None
    operation: str | None = None
    mode: str | None = None
    priority: int | None = None
    delay: float | None = None  # seconds from now
    at: Instant | None = None  # at the earliest
    unique: str | None = None
    hold: bool = False


class EnqueuedJob(Struct, frozen=True, kw_only=True):
    id: int
    state: str
    created: bool


class Enqueued(Reply, frozen=True, kw_only=True):
    count: int
    created: int
    first_id: int
    last_id: int
    jobs: list[EnqueuedJob] = []  # each of them, when there are few


class Enqueue(Request, frozen=True, kw_only=True):
    """All of the orders, or none; each of them `count` times."""

    Reply = Enqueued
    task: str
    orders: Annotated[list[JobOrder], AtMost10k]
    count: int = 1


class RunOrder(Struct, frozen=True, kw_only=True):
    args: dict[str, Any] = {}
    key: str | None = None
    batch: str | None = None


class Started(Reply, frozen=True, kw_only=True):
    count: int
    created: int
    first_id: str
    last_id: str
    runs: list[str] = []


class Start(Request, frozen=True, kw_only=True):
    Reply = Started
    pipeline: str
    orders: Annotated[list[RunOrder], AtMost10k]
    mode: str | None = None


# ---- verbs on jobs and runs --------------------------------------------------------------


class Refused(Struct, frozen=True, kw_only=True):
    code: str
    message: str
    hint: str = ""
    retry_after: float | None = None
    exit_code: int = 1


class Outcome(Struct, frozen=True, kw_only=True):
    """What became of one of the set."""

    id: str  # "12" or "r7"
    done: bool
    state: str | None = None
    refused: Refused | None = None


class Acted(Reply, frozen=True, kw_only=True):
    """Of a large set, as many outcomes as a message holds, and the numbers of the others."""

    outcomes: list[Outcome]
    redrive: int | None = None  # a set worked off in the background
    total: int = 0
    more_done: int = 0
    more_refused: int = 0

    @property
    def done(self) -> int:
        return sum(outcome.done for outcome in self.outcomes) + self.more_done

    @property
    def refused(self) -> int:
        return sum(not outcome.done for outcome in self.outcomes) + self.more_refused


class Act(Request, frozen=True, kw_only=True):
    """A verb on ids, or on all that match a filter.

    Verbs: requeue cancel kill restart run-now hold release discard. Only requeue has `force`,
    `from_step`, `canary`, `pace` and `stop_at`; others refuse them.
    """

    Reply = Acted
    verb: str
    ids: Annotated[list[str], AtMost100k] = []
    where: str | None = None
    newest: int | None = None  # with `where`: nothing that arrived after this id
    expected: str | None = None  # the state a job must be in, or nothing is done to it
    force: bool = False
    again: bool = False  # a run may be processed anew although it has results
    from_step: str | None = None
    canary: int | None = None
    pace: str | None = None  # "50/min"
    stop_at: float | None = None  # share of failures, 0…1
    reason: str | None = None


# ---- the rest ----------------------------------------------------------------------------


class Done(Reply, frozen=True, kw_only=True):
    text: str
    data: dict[str, Any] = {}


class PauseIt(Request, frozen=True, kw_only=True):
    Reply = Done
    name: str  # queue:X | task:X | schedule:X | a bare name when only one has it
    why: str | None = None


class ResumeIt(Request, frozen=True, kw_only=True):
    Reply = Done
    name: str


class Trigger(Request, frozen=True, kw_only=True):
    Reply = Done
    schedule: str


class Drain(Request, frozen=True, kw_only=True):
    """Finish what runs, start nothing more; `stop` ends the daemon after that."""

    Reply = Done
    node: str | None = None
    stop: bool = True


class DiscardOrder(Request, frozen=True, kw_only=True):
    """Remove from the outbox what is no job."""

    Reply = Done
    ticket: str


class Undo(Request, frozen=True, kw_only=True):
    Reply = Done
    redrive: int


class ControlRedrive(Request, frozen=True, kw_only=True):
    Reply = Done
    redrive: int
    verb: str  # pause | resume | stop
    pace: str | None = None


class ReloadReply(Reply, frozen=True, kw_only=True):
    changed: bool
    added: list[str]
    altered: list[str]
    removed: list[str]
    needs_restart: list[str]
    notes: list[str] = []


class Reload(Request, frozen=True, kw_only=True):
    Reply = ReloadReply
    dry_run: bool = False


class Backup(Request, frozen=True, kw_only=True):
    Reply = Done
    path: str


class AddPipeline(Request, frozen=True, kw_only=True):
    Reply = Done
    source: str  # the playbook's text
    name: str | None = None  # instead of the one in the text
    file: str | None = None  # where the text was, as its mistakes are told


Command = (
    Hello
    | Enqueue
    | Start
    | Act
    | PauseIt
    | ResumeIt
    | Trigger
    | Drain
    | DiscardOrder
    | Undo
    | ControlRedrive
    | Reload
    | Backup
    | AddPipeline
)
