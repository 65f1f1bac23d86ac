"""Runs, their batches, and what starts some of them by the clock."""

from __future__ import annotations

from redrive.clock import SECOND
from redrive.models import Run, StepState
from redrive.protocol.rows import BatchRow, FireRow, GateRow, ScheduleRow
from support.incident.failures import DATABASE
from support.incident.times import DAY, HOUR, MINUTE, NOW


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
