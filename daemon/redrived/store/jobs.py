"""Reading single jobs, and how a row becomes what everybody speaks of."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import Connection, Integer, select

from redrive.deciding.guidance import once_over
from redrive.lifecycle import JobState
from redrive.models import Budgets, ErrorRecord, Job, Progress
from redrived.store.database import as_text
from redrived.store.tables import HELD, jobs

_decode = msgspec.json.decode
_NUMBERS = tuple(column.name for column in jobs.c if isinstance(column.type, Integer))
_WHOLE = (int, type(None))
_UNREADABLE = "unreadable"  # what stands where there should have been JSON, by this name
_NO_JSON = (msgspec.MsgspecError, ValueError, TypeError, RecursionError)


def get(connection: Connection, id: int) -> Job | None:
    row = connection.execute(select(jobs).where(jobs.c.id == id)).mappings().first()
    return None if row is None else record(dict(row))


def get_many(connection: Connection, ids: list[int]) -> list[Job]:
    rows = connection.execute(select(jobs).where(jobs.c.id.in_(ids)).order_by(jobs.c.id))
    return [record(dict(row)) for row in rows.mappings()]


def pinned(connection: Connection, id: int) -> str | None:
    """The pipeline and version in which the policy of its step is written."""
    return connection.execute(select(jobs.c.pinned).where(jobs.c.id == id)).scalar()


def executions(connection: Connection, id: int) -> int:
    """How often a job has been executed, over all its lives."""
    query = select(jobs.c.executions).where(jobs.c.id == id)
    return connection.execute(query).scalar() or 0


def record(row: dict[str, Any]) -> Job:
    """A row as everybody speaks of it."""
    if bytes in map(type, row.values()) or not all(type(row[n]) in _WHOLE for n in _NUMBERS):
        # Put there by somebody else: no client would take it.
        row = {name: _fitting(name, value) for name, value in row.items()}
    return Job(
        id=row["id"],
        task=row["task"],
        queue=row["queue"],
        operation=row["operation"],
        mode=row["mode"],
        priority=row["priority"],
        state=JobState(row["state"]),
        held=row["waits"] == HELD,
        reason=row["reason"],
        attempts=row["attempts"],
        max_attempts=row["max_attempts"],
        life=row["life"],
        lease=row["lease"],
        available_at=row["available_at"],
        created_at=row["created_at"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        last_attempt_at=row["last_attempt_at"],
        heartbeat_at=row["heartbeat_at"],
        scheduled_for=row["scheduled_for"],
        node=row["node"],
        error=_error(row),
        result=readable(row["result"], Any),
        metrics=readable(row["metrics"], dict[str, Any]),
        progress=_progress(row["progress"]),
        budgets=Budgets(
            attempts=row["attempts"],
            max_attempts=row["max_attempts"],
            lost=row["lost"],
            manual_retries=row["manual_retries"],
            interruptions=row["interruptions"],
            snoozes=row["snoozes"],
        ),
        run=None if row["run_id"] is None else f"r{row['run_id']}",
        step=row["step"],
        batch=row["batch"],
        unique=row["unique_key"],
        args=readable(row["args"], dict[str, Any]),
    )


def _fitting(name: str, value: Any) -> Any:
    if name in _NUMBERS:
        return _as_number(value)
    return as_text(value) if isinstance(value, bytes) else value


def _as_number(value: Any) -> int | None:
    """0 stands for what is no number."""
    if value is None:
        return None
    try:
        return int(value)
    except (ValueError, OverflowError):
        return 0


def _error(row: dict[str, Any]) -> ErrorRecord | None:
    if row["error"] is None:
        return None
    try:
        error = _decode(row["error"], type=ErrorRecord)
    except _NO_JSON:
        return ErrorRecord(
            error_type=_UNREADABLE, category="unknown", message=str(row["error"]), rule="unknown"
        )
    if row["state"] == JobState.CANCELLED:
        # It was written down when a retry was still to come.
        return msgspec.structs.replace(error, guidance=once_over(error.guidance))
    return error


def _progress(value: str | None) -> Progress | None:
    if value is None:
        return None
    try:
        return _decode(value, type=Progress)
    except _NO_JSON:
        return Progress(text=str(value))


def readable(value: str | None, kind: Any) -> Any:
    """What a column says; as it stands there, where that is none of it: it hides no other row."""
    if value is None:
        return None
    try:
        return _decode(value, type=kind)
    except _NO_JSON:
        return {_UNREADABLE: str(value)}
