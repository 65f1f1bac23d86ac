"""Jobs in every state, one of them with its past and its future, and the end of the log."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from redrive.clock import SECOND
from redrive.lifecycle import JobState
from redrive.models import Attempt, Event, Job, Progress
from redrive.protocol import queries
from redrive.protocol.rows import Plan
from support.incident.failures import DATABASE, RESET
from support.incident.times import HOUR, MINUTE, NOW


def jobs(number: int = 240) -> list[Job]:
    """Every state there is, over and over; the newest has the highest id."""
    return [a_job(id) for id in range(1, number + 1)]


def a_job(id: int) -> Job:
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
        job=a_job(id),
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
