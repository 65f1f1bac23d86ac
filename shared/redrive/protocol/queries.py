"""What anybody who may look can ask, and what comes back."""

from __future__ import annotations

from typing import Any, Literal

from redrive.instants import Instant
from redrive.models import (
    Attempt,
    Decision,
    Event,
    Job,
    Run,
)
from redrive.protocol.envelope import Reply, Request
from redrive.protocol.rehearsals import Classify, Preview, ShowPolicy, TestRules
from redrive.protocol.rows import (
    Attention,
    BatchRow,
    Check,
    DueRow,
    GroupRow,
    NodeRow,
    OutboxRow,
    Pause,
    PipelineRow,
    Plan,
    QueueRow,
    RedriveRow,
    ScheduleRow,
    Usage,
)

# ---- who is there ------------------------------------------------------------------------


class Welcome(Reply, frozen=True, kw_only=True):
    """The daemon introduces itself; consoles and commands show the environment's name."""

    version: int
    program: str  # redrive's own version
    node: str
    epoch: str  # new with every start of the daemon: everything known before is void
    store: str
    role: Literal["viewer", "operator"]
    who: str
    environment: str | None = None
    colour: str | None = None
    protected: bool = False
    events: str | None = None  # where events are told, when asked over tcp
    config: str | None = None
    pid: int = 0
    state_dir: str = ""


class Hello(Request, frozen=True, kw_only=True):
    Reply = Welcome
    version: int
    client: str


# ---- the whole at a glance ---------------------------------------------------------------


class StatusReply(Reply, frozen=True, kw_only=True):
    seq: int
    at: Instant
    epoch: str
    environment: str | None
    node: str
    state: str  # running | draining | waiting for the store
    trouble: str | None
    states: dict[str, int]
    queues: list[QueueRow]
    nodes: list[NodeRow]
    paused: list[Pause]
    attention: list[Attention]
    due: list[DueRow]
    uptime: float = 0.0


class Status(Request, frozen=True, kw_only=True):
    Reply = StatusReply


# ---- lists -------------------------------------------------------------------------------


class JobPage(Reply, frozen=True, kw_only=True):
    jobs: list[Job]
    after: str | None  # ask with this for the next page; None: there is none
    as_of: int  # the seq this page is true of
    total: int | None = None
    exact: bool = True


class ListJobs(Request, frozen=True, kw_only=True):
    """`after` continues a listing; `offset` jumps, for a table that scrolls.

    A page ends at its limit, or where a message is full.
    """

    Reply = JobPage
    where: str = ""
    sort: str | None = None
    limit: int = 50
    after: str | None = None
    offset: int | None = None
    count: bool = False


class GroupPage(Reply, frozen=True, kw_only=True):
    groups: list[GroupRow]
    as_of: int


class ListGroups(Request, frozen=True, kw_only=True):
    """What failed, by its error, or by what else it has in common."""

    Reply = GroupPage
    where: str = ""
    limit: int = 200
    by: Literal["error", "task", "queue", "node", "day"] = "error"


class RunPage(Reply, frozen=True, kw_only=True):
    runs: list[Run]
    after: str | None
    as_of: int


class ListRuns(Request, frozen=True, kw_only=True):
    Reply = RunPage
    where: str = ""
    limit: int = 50
    after: str | None = None


class BatchPage(Reply, frozen=True, kw_only=True):
    batches: list[BatchRow]
    as_of: int
    after: str | None = None


class ListBatches(Request, frozen=True, kw_only=True):
    Reply = BatchPage
    limit: int = 200
    after: str | None = None


class QueuePage(Reply, frozen=True, kw_only=True):
    queues: list[QueueRow]
    as_of: int


class ListQueues(Request, frozen=True, kw_only=True):
    Reply = QueuePage


class SchedulePage(Reply, frozen=True, kw_only=True):
    schedules: list[ScheduleRow]
    as_of: int


class ListSchedules(Request, frozen=True, kw_only=True):
    Reply = SchedulePage
    next: int = 5


class NodePage(Reply, frozen=True, kw_only=True):
    nodes: list[NodeRow]
    as_of: int


class ListNodes(Request, frozen=True, kw_only=True):
    Reply = NodePage


class RedrivePage(Reply, frozen=True, kw_only=True):
    redrives: list[RedriveRow]


class ListRedrives(Request, frozen=True, kw_only=True):
    Reply = RedrivePage
    limit: int = 100


class OutboxPage(Reply, frozen=True, kw_only=True):
    orders: list[OutboxRow]


class ListOutbox(Request, frozen=True, kw_only=True):
    """What waits in the outbox or was refused; with a ticket that one, whatever became of it."""

    Reply = OutboxPage
    ticket: str | None = None
    limit: int = 200


class PipelinePage(Reply, frozen=True, kw_only=True):
    pipelines: list[PipelineRow]


class ListPipelines(Request, frozen=True, kw_only=True):
    Reply = PipelinePage


# ---- one thing ---------------------------------------------------------------------------


class JobReply(Reply, frozen=True, kw_only=True):
    job: Job
    history: list[Attempt]  # the last ones, as `execution` of the first says; at most 1,000
    plan: list[Plan] = []
    policy: str = ""
    next: str = ""  # what the operator can do now, in one sentence
    usage: Usage | None = None
    as_of: int = 0


class ShowJob(Request, frozen=True, kw_only=True):
    Reply = JobReply
    id: int


class RunReply(Reply, frozen=True, kw_only=True):
    run: Run
    next: str = ""
    as_of: int = 0


class ShowRun(Request, frozen=True, kw_only=True):
    """Of a run that is too large for a message, what says most is told in short.

    Where a result or the metrics were, `{"left_out": ...}` says so.
    """

    Reply = RunReply
    id: str


class PipelineReply(Reply, frozen=True, kw_only=True):
    name: str
    version: int
    definition: dict[str, Any]
    source: str
    graph: str


class ShowPipeline(Request, frozen=True, kw_only=True):
    Reply = PipelineReply
    name: str
    version: int | None = None


class WhyReply(Reply, frozen=True, kw_only=True):
    """`code` names the kind of reason; `text` says it; `saw` are the values behind it."""

    id: str
    state: str
    code: str
    text: str
    saw: dict[str, Any] = {}
    decision: Decision | None = None
    hint: str = ""


class Why(Request, frozen=True, kw_only=True):
    Reply = WhyReply
    id: str


class EventPage(Reply, frozen=True, kw_only=True):
    events: list[Event]
    head: int  # the newest seq in the store
    oldest: int = 0


class ListEvents(Request, frozen=True, kw_only=True):
    """Events after a seq, oldest first; of one job or run when `id` is given.

    A page ends where a message is full, so the last one is that without events.
    """

    Reply = EventPage
    after: int = 0
    limit: int = 1000
    id: str | None = None
    last: int | None = None  # instead of `after`: the newest so many


class LogReply(Reply, frozen=True, kw_only=True):
    data: bytes
    offset: int  # where to go on reading
    size: int
    finished: bool
    attempt: int
    execution: int
    warning: str | None = None


class ReadLog(Request, frozen=True, kw_only=True):
    Reply = LogReply
    id: int
    attempt: int | None = None  # an execution's number; None: the newest
    offset: int = 0
    limit: int = 256 * 1024
    tail: bool = False


class FateReply(Reply, frozen=True, kw_only=True):
    """What became of a request whose answer was lost."""

    known: bool
    refusal: str | None = None


class Fate(Request, frozen=True, kw_only=True):
    Reply = FateReply
    request: str


class DoctorReply(Reply, frozen=True, kw_only=True):
    checks: list[Check]


class Doctor(Request, frozen=True, kw_only=True):
    Reply = DoctorReply


Query = (
    Hello
    | Status
    | ListJobs
    | ListGroups
    | ListRuns
    | ListBatches
    | ListQueues
    | ListSchedules
    | ListNodes
    | ListRedrives
    | ListOutbox
    | ListPipelines
    | ShowJob
    | ShowRun
    | ShowPipeline
    | Why
    | ListEvents
    | ReadLog
    | Classify
    | ShowPolicy
    | TestRules
    | Preview
    | Fate
    | Doctor
)
