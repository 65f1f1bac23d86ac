"""Jobs over HTTP: look, enqueue, act."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from redrive.errors import NotFound, UsageProblem
from redrive.instants import from_datetime
from redrive.models import plain
from redrive.protocol.commands import Act, Enqueue, JobOrder
from redrive.protocol.queries import ListJobs, ShowJob
from redrived.api import acting, enqueue
from redrived.api import jobs as api
from redrived.api.server import Asker
from redrived.engine.engine import Engine
from redrived.http import problems
from redrived.http.bodies import answer, number, read

LONGEST_PAGE = 1_000
LARGEST_ID = (1 << 63) - 1


class NewJob(Struct, frozen=True, forbid_unknown_fields=True):
    """What `POST /v1/jobs` takes."""

    task: str
    args: dict[str, Any] = {}
    queue: str | None = None
    operation: str | None = None
    mode: str | None = None
    priority: int | None = None
    delay: float | None = None
    at: datetime | None = None
    unique: str | None = None
    hold: bool = False


class Wish(Struct, frozen=True, forbid_unknown_fields=True):
    """What `POST /v1/jobs/{id}/requeue` and the like take."""

    force: bool = False
    reason: str | None = None


async def list_jobs(engine: Engine, asker: Asker, request: Request) -> Response:
    query = request.query_params
    asked = ListJobs(
        where=query.get("where", ""),
        sort=query.get("sort"),
        limit=number(request, "limit", 50, LONGEST_PAGE),
        after=query.get("after"),
    )
    page = await api.list_jobs(engine, asker, asked)
    return answer({"jobs": [plain(job) for job in page.jobs], "after": page.after})


async def show_job(engine: Engine, asker: Asker, request: Request) -> Response:
    reply = await api.show_job(engine, asker, ShowJob(id=_id(request)))
    shown = {**plain(reply.job), "history": [plain(attempt) for attempt in reply.history]}
    return answer({**shown, "next": reply.next})


async def new_job(engine: Engine, asker: Asker, request: Request) -> Response:
    body = await read(request, NewJob)
    order = JobOrder(
        args=body.args,
        queue=body.queue,
        operation=body.operation,
        mode=body.mode,
        priority=body.priority,
        delay=body.delay,
        at=_instant(body.at),
        unique=body.unique,
        hold=body.hold,
    )
    placed = await enqueue.enqueue_jobs(engine, asker, Enqueue(task=body.task, orders=[order]))
    (job,) = placed.jobs
    status = 201 if job.created else 200
    return answer(job, status, {"Location": f"/v1/jobs/{job.id}"})


async def act(engine: Engine, asker: Asker, request: Request) -> Response:
    """The verb is the last part of the path."""
    wish = await read(request, Wish)
    verb = request.url.path.rpartition("/")[2]
    id = str(_id(request))
    acted = await acting.act(
        engine, asker, Act(verb=verb, ids=[id], force=wish.force, reason=wish.reason)
    )
    (outcome,) = acted.outcomes
    refused = outcome.refused
    if refused is None:
        return answer({"id": int(id), "done": True, "state": outcome.state})
    return problems.answer(
        problems.STATUS.get(refused.code, 409),
        refused.code,
        refused.message,
        refused.hint,
        retry_after=refused.retry_after,
    )


def _id(request: Request) -> int:
    id: int = request.path_params["id"]
    if not 0 < id <= LARGEST_ID:
        raise NotFound(f"there is no job {str(id)[:40]}", hint="`GET /v1/jobs` lists them")
    return id


def _instant(at: datetime | None) -> int | None:
    if at is None:
        return None
    if at.tzinfo is None:
        raise UsageProblem("`at` names no time zone", hint="end it with Z or +02:00")
    return from_datetime(at)
