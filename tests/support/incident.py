"""A believable afternoon: a database is away, a queue is paused, a node is late."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from redrive.clock import SECOND
from redrive.lifecycle import JobState
from redrive.models import Attempt, ErrorRecord, Event, Job, Progress, Run, StepState
from redrive.protocol import queries
from redrive.protocol.rows import (
    Attention,
    BatchRow,
    DueRow,
    FireRow,
    GateRow,
    GroupRow,
    NodeRow,
    Plan,
    QueueRow,
    RedriveRow,
    ScheduleRow,
)
from support.clock import START
from support.recorded import Recorded

NOW = START
MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86_400 * SECOND

RESET = ErrorRecord(
    error_type="connection_error",
    category="transient",
    message="ConnectionResetError: peer closed connection",
    user_message="Network connection error",
    guidance="Will retry automatically.",
    rule="builtin: connection (refused|reset|error)",
    timestamp=NOW - 30 * SECOND,
    fingerprint="a41f09c2",
    traceback='Traceback (most recent call last):\n  File "mail.py", line 41, in send\n    sock.send(data)\nConnectionResetError: peer closed connection',
)
DATABASE = ErrorRecord(
    error_type="OperationalError",
    category="transient",
    message="could not connect to db2.internal:5432",
    user_message="Database unreachable",
    guidance="Wait until db2 answers, then redrive the group.",
    timestamp=NOW - 2 * MINUTE,
    fingerprint="77be10d4",
)


def welcome(**changes: object) -> queries.Welcome:
    known: dict[str, object] = {
        "version": 1,
        "program": "1.0.0",
        "node": "w1",
        "epoch": "e1",
        "store": "sqlite",
        "role": "operator",
        "who": "anna",
        "environment": "PROD-EU",
        "colour": "red",
    }
    return queries.Welcome(**{**known, **changes})  # type: ignore[arg-type]


def status(**changes: object) -> queries.StatusReply:
    known: dict[str, object] = {
        "seq": 8_412_903,
        "at": NOW,
        "epoch": "e1",
        "environment": "PROD-EU",
        "node": "w1",
        "state": "running",
        "trouble": None,
        "states": {"queued": 1856, "leased": 12, "retry": 35, "done": 91_204, "dead": 412},
        "queues": queues(),
        "nodes": nodes(),
        "paused": [],
        "attention": attention(),
        "due": due(),
    }
    return queries.StatusReply(**{**known, **changes})  # type: ignore[arg-type]


def queues() -> list[QueueRow]:
    return [
        QueueRow(
            name="mail",
            priority=100,
            concurrency=8,
            running=8,
            states={"queued": 1204, "retry": 31, "dead": 2, "done": 80_000},
            oldest_ready_at=NOW - 252 * SECOND,
            ready=1204,
            retrying=31,
        ),
        QueueRow(
            name="reports",
            priority=50,
            concurrency=4,
            rate="100/min",
            running=3,
            states={"queued": 12, "retry": 4, "dead": 398, "done": 9_000},
            oldest_ready_at=NOW - 21 * SECOND,
            ready=12,
            retrying=4,
        ),
        QueueRow(
            name="imports",
            concurrency=2,
            paused=True,
            paused_by="anna",
            paused_at=NOW - 63 * MINUTE,
            paused_why="vendor outage",
            states={"queued": 640, "dead": 12, "done": 1_100},
            oldest_ready_at=NOW - 63 * MINUTE,
            ready=600,
            scheduled=28,
            held=12,
        ),
        QueueRow(name="default", concurrency=16, running=1, states={"done": 1_104}, priority=10),
    ]


def nodes() -> list[NodeRow]:
    def node(name: str, **more: object) -> NodeRow:
        known: dict[str, object] = {
            "name": name,
            "state": "up",
            "started_at": NOW - 3 * DAY - 4 * HOUR,
            "beat_at": NOW - SECOND // 2,
            "version": "1.0.0",
            "slots": 8,
        }
        return NodeRow(**{**known, **more})  # type: ignore[arg-type]

    giga = 1024**3
    return [
        node(
            "w1",
            busy=8,
            cpu=61.0,
            memory=int(2.1 * giga),
            memory_total=8 * giga,
            queues=["mail", "reports"],
            leader=True,
        ),
        node(
            "w2", slots=16, busy=1, cpu=9.0, memory=giga, memory_total=8 * giga, queues=["default"]
        ),
        node(
            "w3",
            slots=4,
            busy=3,
            cpu=40.0,
            memory=4 * giga,
            memory_total=8 * giga,
            queues=["mail"],
            beat_at=NOW - 9 * SECOND,
            version="0.9.1",
        ),
    ]


def attention() -> list[Attention]:
    return [
        Attention(
            kind="dead",
            text="398 dead in reports: Database unreachable",
            where="group:77be10d4",
            screen="dead",
            severity="error",
        ),
        Attention(
            kind="paused",
            text='imports paused 1h03m by anna: "vendor outage"',
            where="queue:imports",
        ),
        Attention(
            kind="limit", text="mail at its limit 8/8, oldest waits 4m12s", where="queue:mail"
        ),
        Attention(kind="node", text="node w3 late: last beat 9s ago", screen="nodes"),
    ]


def due() -> list[DueRow]:
    return [
        DueRow(at=NOW + 50 * SECOND, kind="retry", n=31, name="mail"),
        DueRow(at=NOW + 2 * MINUTE, kind="schedule", n=1, name="nightly-rollup"),
        DueRow(at=NOW + 6 * MINUTE, kind="retry", n=4, name="reports"),
        DueRow(at=NOW + 12 * MINUTE, kind="schedule", n=1, name="sync-crm"),
    ]


def jobs(number: int = 240) -> list[Job]:
    """Every state there is, over and over; the newest has the highest id."""
    return [_job(id) for id in range(1, number + 1)]


def _job(id: int) -> Job:
    base = Job(
        id=id,
        task="send_invoice",
        queue="mail",
        max_attempts=8,
        created_at=NOW - (241 - id) * 20 * SECOND,
        args={"invoice": 20_000 + id, "user": {"id": 42}},
    )
    match id % 8:
        case 0:
            waits = {"state": JobState.RETRY, "attempts": 3, "available_at": NOW + 41 * SECOND}
            return replace(base, error=RESET, **waits)
        case 1:
            progress = Progress(done=62, total=100)
            return replace(
                base,
                task="send_welcome",
                state=JobState.LEASED,
                attempts=1,
                started_at=NOW - 7 * SECOND,
                node="w1",
                progress=progress,
            )
        case 2:
            return replace(base, task="import_row", queue="imports")
        case 3:
            return replace(
                base,
                task="rollup",
                queue="reports",
                state=JobState.DEAD,
                reason="exhausted",
                attempts=8,
                finished_at=NOW - 2 * MINUTE,
                error=DATABASE,
            )
        case 4:
            return replace(base, state=JobState.DONE, attempts=1, finished_at=NOW - id * SECOND)
        case 5:
            return replace(base, task="nightly", queue="default", available_at=NOW + 3 * HOUR)
        case 6:
            return replace(
                base,
                task="send_digest",
                state=JobState.LEASED,
                attempts=1,
                started_at=NOW - 151 * SECOND,
                node="w3",
                progress=Progress(text="no progress told"),
            )
        case _:
            if id % 16 == 7:
                return replace(base, state=JobState.CANCELLED, finished_at=NOW - HOUR)
            return replace(base, held=True, task="bill_customer")


def detail(id: int = 240) -> queries.JobReply:
    """A job in its fourth attempt to come, with the rest of its life told ahead."""

    def past(number: int, ago: float, ran: float, node: str) -> Attempt:
        start = NOW - round(ago * SECOND)
        return Attempt(
            execution=number,
            attempt=number,
            life=1,
            started_at=start,
            ended_at=start + round(ran * SECOND),
            outcome="failed",
            error=RESET,
            node=node,
        )

    plan = [
        Plan(attempt=4, at=NOW + 41 * SECOND, approximate=True),
        Plan(attempt=5, at=NOW + 128 * MINUTE, approximate=True),
        Plan(attempt=6, at=NOW + 308 * MINUTE, approximate=True),
        Plan(attempt=7, at=NOW + 488 * MINUTE, approximate=True),
        Plan(attempt=8, at=NOW + 668 * MINUTE, approximate=True, last=True),
    ]
    return queries.JobReply(
        job=_job(id),
        history=[past(1, 1097, 1.2, "w1"), past(2, 1081, 0.9, "w2"), past(3, 960, 30.0, "w1")],
        plan=plan,
        policy="backoff: first 15s, factor 8, cap 3h, jitter ±10%, 8 attempts",
        next="wait, or run it now with r",
        as_of=8_412_903,
    )


def events() -> list[Event]:
    """The end of the log."""
    kinds: list[tuple[str, int | None, str | None, dict[str, Any]]] = [
        ("action_started", 201, "leased", {"node": "w1", "pid": 4412}),
        ("action_error", 240, "leased", {"error_type": "connection_error", "status": 451}),
        ("step_retry", 240, "retry", {"delay": 41.0}),
        ("node_late", None, None, {"node": "w3", "seconds": 9}),
        ("action_completed", 204, "done", {"duration": 1.2}),
    ]
    return [
        Event(
            seq=8_412_899 + index,
            at=NOW - (5 - index) * SECOND // 10,
            type=kind,
            job=job,
            state=state,
            attempts=1 if job else None,
            data=data,
        )
        for index, (kind, job, state, data) in enumerate(kinds)
    ]


def groups() -> list[GroupRow]:
    return [
        GroupRow(
            fingerprint="77be10d4",
            error_type="OperationalError",
            category="transient",
            signature="OperationalError: could not connect to <host>",
            dead=398,
            retrying=4,
            first_at=NOW - 3 * HOUR,
            last_at=NOW - 2 * MINUTE,
            tasks={"rollup": 380, "bill_customer": 18},
            queues={"reports": 398},
            sample=235,
            user_message="Database unreachable",
            guidance="Wait until db2 answers, then redrive the group.",
            trend=[0] * 20 + [12, 90, 160, 136],
        ),
        GroupRow(
            fingerprint="09d1ce55",
            error_type="validation_error",
            category="permanent",
            signature="ValidationError: field <name> required",
            dead=12,
            retrying=0,
            first_at=NOW - 4 * DAY,
            last_at=NOW - 3 * HOUR,
            tasks={"import_row": 12},
            queues={"imports": 12},
            sample=99,
            user_message="The data does not fit",
            trend=[6, 2, 1] + [0] * 17 + [2, 1, 0, 0],
        ),
        GroupRow(
            fingerprint="e0e0b001",
            error_type="oom",
            category="permanent",
            signature="killed: out of memory (SIGKILL, 137)",
            dead=2,
            retrying=0,
            first_at=NOW - 30 * DAY,
            last_at=NOW - 6 * DAY,
            tasks={"report_pdf": 2},
            queues={"mail": 2},
            sample=98,
        ),
    ]


def groups_by() -> dict[str, list[GroupRow]]:
    """The dead jobs of `groups`, by what else they have in common."""
    database, invalid, memory = groups()
    return {
        "task": [
            replace(database, name="rollup", dead=380),
            replace(database, name="bill_customer", dead=18),
            replace(invalid, name="import_row"),
            replace(memory, name="report_pdf"),
        ],
        "queue": [
            replace(database, name="reports"),
            replace(invalid, name="imports"),
            replace(memory, name="mail"),
        ],
        "node": [
            replace(database, name="w1", dead=400, errors=2),
            replace(invalid, name="w3"),
        ],
        "day": [
            replace(database, name="2026-09-21", dead=404, errors=2),
            replace(invalid, name="2026-09-17", dead=8),
        ],
    }


def redrive() -> RedriveRow:
    return RedriveRow(
        id=4,
        state="running",
        created_at=NOW - 2 * MINUTE,
        by="anna",
        where="state:dead group:77be10d4",
        total=386,
        requeued=118,
        skipped=2,
        succeeded=110,
        failed=3,
    )


def runs() -> list[Run]:
    def step(name: str, state: str, **more: object) -> StepState:
        return StepState(name=name, state=state, max_attempts=3, **more)  # type: ignore[arg-type]

    return [
        Run(
            id="r9",
            pipeline="ingest",
            key="archive-77.zip",
            status="PARSING",
            created_at=NOW - 40 * SECOND,
            steps=[
                step("store", "done", job=201, attempts=1),
                step("parse", "leased", job=209, attempts=1),
                step("index", "waiting"),
            ],
        ),
        Run(
            id="r8",
            pipeline="ingest",
            key="archive-76.zip",
            batch="night",
            state="failed",
            status="FAILED",
            created_at=NOW - 9 * MINUTE,
            last_completed="store",
            steps=[
                step("store", "done", job=196, attempts=1),
                step("parse", "dead", job=203, attempts=3, error=DATABASE),
                step("index", "waiting", why="parse failed"),
            ],
        ),
        Run(
            id="r7",
            pipeline="documents",
            key="contract.pdf",
            batch="night",
            state="done",
            status="STORED",
            created_at=NOW - 2 * HOUR,
            steps=[step("parse", "done", attempts=1), step("embed", "done", attempts=2)],
        ),
    ]


def batches() -> list[BatchRow]:
    return [
        BatchRow(
            name="night",
            pipeline="ingest",
            created_at=NOW - 2 * HOUR,
            runs=40,
            running=6,
            done=33,
            failed=1,
            cancelled=0,
            phases={
                "request": {"done": 39, "dead": 1},
                "download": {"gated": 39, "skipped": 1},
                "clear": {"clearing": 1, "waiting": 39},
            },
            gates=[
                GateRow(
                    step="download", round=1, unsettled=0, waiting=39, opens_at=NOW + 11 * MINUTE
                )
            ],
        )
    ]


def schedules() -> list[ScheduleRow]:
    def fire(ago: int, state: str = "done", outcome: str = "fired") -> FireRow:
        return FireRow(slot=NOW - ago, at=NOW - ago, outcome=outcome, state=state, took=242.0)

    return [
        ScheduleRow(
            name="nightly-rollup",
            what="pipeline rollup",
            words="daily at 02:00",
            timezone="Europe/Berlin",
            next=[NOW + 2 * MINUTE + day * DAY for day in range(5)],
            last=[fire(day * DAY, "dead" if day == 4 else "done") for day in range(8, 0, -1)],
        ),
        ScheduleRow(
            name="sync-crm",
            what="task sync_crm",
            words="every 15 minutes",
            timezone="UTC",
            next=[NOW + 12 * MINUTE + step * 15 * MINUTE for step in range(5)],
            last=[fire(3 * MINUTE)],
            overlap="queue",
        ),
        ScheduleRow(
            name="close-books",
            what="task close_books",
            words="on day 1 of the month at 06:00",
            timezone="UTC",
            paused=True,
            paused_by="anna",
        ),
    ]


def source(**changes: object) -> Recorded:
    """All of it, ready to be looked at."""
    recorded = Recorded(status(**changes), welcome())
    recorded.jobs = jobs()
    recorded.details = {240: detail()}
    recorded.groups = groups()
    recorded.groups_by = groups_by()
    recorded.runs = runs()
    recorded.batches = batches()
    recorded.schedules = schedules()
    recorded.events = events()
    recorded.log = (
        b"".join(b"12:03:%02d loading template welcome_v%d\n" % (n % 60, n) for n in range(40))
        + b"\x1b[31mERROR\x1b[0m smtp 451 try later\n"
    )
    return recorded
