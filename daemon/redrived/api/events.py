"""The log, and what attempts wrote."""

from __future__ import annotations

from redrive.errors import NotFound
from redrive.lifecycle import JobState
from redrive.models import Event, Job
from redrive.protocol.codec import that_fit
from redrive.protocol.envelope import ROOM
from redrive.protocol.queries import EventPage, ListEvents, LogReply, ReadLog
from redrived.api.server import Asker
from redrived.engine.attempt import Attempt
from redrived.engine.engine import Engine
from redrived.engine.intake import check_ids
from redrived.processes.output_pages import Page
from redrived.store import events, jobs, run_pages
from redrived.store.run_pages import run_number
from redrived.store.store import Connection

MOST = 10_000
LARGEST = 1024 * 1024  # bytes of output in one reply


async def list_events(engine: Engine, asker: Asker, request: ListEvents) -> EventPage:
    limit = min(max(1, request.limit), MOST)

    def ask(connection: Connection) -> EventPage:
        found = _ask(connection, request, limit)
        if request.last is not None and request.id is None:
            told = list(that_fit(reversed(found), ROOM))[::-1]
        else:
            told = list(that_fit(found, ROOM))
        return EventPage(
            events=told,
            head=events.head(connection),
            oldest=events.oldest(connection),
        )

    return await engine.store.read(ask)


def _ask(connection: Connection, request: ListEvents, limit: int) -> list[Event]:
    if request.id is None:
        if request.last is not None:
            return events.newest(connection, max(0, min(request.last, MOST)))
        return events.after(connection, request.after, limit)
    if request.id.startswith("r"):
        run = run_number(request.id)
        of_it = events.of_run(connection, run, request.after, limit)
        if not of_it and request.after == 0 and not run_pages.exists(connection, run):
            raise NotFound(f"there is no run {request.id}", hint="`redrive runs` lists them")
        return of_it
    job = check_ids([request.id])[0]
    found = events.of_job(connection, job, request.after, limit)
    if not found and request.after == 0 and jobs.get(connection, job) is None:
        raise NotFound(f"there is no job {job}", hint="it never was, or its events went with it")
    return found


async def read_log(engine: Engine, asker: Asker, request: ReadLog) -> LogReply:
    """Output of an attempt; of a running one, what there is so far."""
    job, executions = await engine.store.read(_executions, request.id)
    if job is None:
        raise NotFound(f"there is no job {request.id}", hint="`redrive jobs` lists them")
    if executions == 0:
        raise NotFound(
            f"job {request.id} has not been executed yet",
            hint=f"`redrive why {request.id}` says why",
        )
    execution = request.attempt or executions
    if not 1 <= execution <= executions:
        raise NotFound(
            f"job {request.id} has no attempt {execution}", hint=f"it has had {executions}"
        )
    limit = min(max(1, request.limit), LARGEST)
    attempt = engine.attempts.get(request.id)
    is_running = job.state is JobState.LEASED and execution == executions
    number = await engine.store.read(events.attempt_of, job.id, execution)
    page = None
    if attempt is not None and attempt.job.execution == execution:
        page = _live_page(engine, attempt, request, limit)
    if page is None:
        page = _kept_page(engine, request, execution, limit)
    return LogReply(
        data=b"".join(chunk.data for chunk in page.chunks),
        offset=page.next_offset,
        size=page.size,
        finished=not is_running,
        attempt=job.attempts if number is None else number,
        execution=execution,
        warning=None if page.size else await _said_elsewhere(engine, request.id, execution),
    )


async def _said_elsewhere(engine: Engine, job: int, execution: int) -> str | None:
    """Where output is that is not here: it stays with the node that ran the attempt."""
    if engine.store.database.is_sqlite:
        return None
    told = await engine.store.read(events.of_job, job)
    begun = [event.data["node"] for event in told if event.type == "action_started"]
    node = begun[execution - 1] if execution <= len(begun) else engine.node
    if node == engine.node:
        return None
    return f"node {node} ran this attempt and has its output: ask the daemon there"


def _live_page(engine: Engine, attempt: Attempt, request: ReadLog, limit: int) -> Page | None:
    """What its worker prints just now; None when it has its own files, or has ended meanwhile."""
    path = attempt.executor.live_output(attempt)
    if path is None:
        return None
    offset = request.offset
    if request.tail:
        offset = max(0, engine.outputs.read_live(path, 0, 0).size - limit)
    page = engine.outputs.read_live(path, offset, limit)
    return page if attempt.executor.live_output(attempt) == path else None


def _kept_page(engine: Engine, request: ReadLog, execution: int, limit: int) -> Page:
    if request.tail:
        return engine.outputs.tail(request.id, execution, limit)
    return engine.outputs.read(request.id, execution, request.offset, limit)


def _executions(connection: Connection, id: int) -> tuple[Job | None, int]:
    return jobs.get(connection, id), jobs.executions(connection, id)
