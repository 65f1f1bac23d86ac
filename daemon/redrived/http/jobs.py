"""Jobs over HTTP: look, enqueue, act."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict
from starlette.requests import Request
from starlette.responses import Response

from redrive.config.values import DURATION, parse_duration
from redrive.errors import NotFound, UsageProblem
from redrive.instants import from_datetime
from redrive.orders import LONGEST_DELAY, LONGEST_TEXT
from redrive.protocol.commands import Act, Enqueue, JobOrder
from redrive.protocol.queries import ListJobs, ShowJob
from redrived.api import acting, enqueue
from redrived.api import jobs as api
from redrived.api.server import Asker
from redrived.engine.engine import Engine
from redrived.http import problems
from redrived.http.bodies import answer, check_parameters, number, read
from redrived.http.replies import ActedOn, JobsPage, ShownJob

LONGEST_PAGE = 1_000
PARAMETERS = ("where", "sort", "limit", "after")
LARGEST_ID = 10**18 - 1  # as everywhere: 18 digits


# Checked where jobs are made; here they are told to whoever reads the OpenAPI document.
_Word = Annotated[
    str,
    msgspec.Meta(
        extra_json_schema={"minLength": 1, "maxLength": 200, "pattern": r"^[^\x00-\x1f\x7f]*$"}
    ),
]
_Delay = Annotated[
    float,
    msgspec.Meta(
        description="seconds, in place of `at`",
        extra_json_schema={"minimum": 0, "maximum": LONGEST_DELAY},
    ),
]
_DelayText = Annotated[
    str, msgspec.Meta(description=f"{DURATION}, in place of `at`", examples=["15m", "1h30m"])
]
_Reason = Annotated[
    str,
    msgspec.Meta(extra_json_schema={"maxLength": LONGEST_TEXT, "pattern": r"^[^\x00]*$"}),
]
_At = Annotated[datetime, msgspec.Meta(tz=True)]


class NewJob(Struct, frozen=True, forbid_unknown_fields=True):
    """What `POST /v1/jobs` takes."""

    task: str
    args: dict[str, Any] = {}
    queue: str | None = None
    operation: _Word | None = None
    mode: _Word | None = None
    priority: int | None = None
    delay: _Delay | _DelayText | None = None
    at: _At | None = None
    unique: _Word | None = None
    hold: bool = False


class Wish(Struct, frozen=True, forbid_unknown_fields=True):
    """What `POST /v1/jobs/{id}/cancel` and `kill` take."""

    reason: _Reason | None = None


class Requeue(Wish, frozen=True, forbid_unknown_fields=True):
    """What `POST /v1/jobs/{id}/requeue` takes."""

    force: bool = False


WISHES: Mapping[str, type[Wish]] = {"requeue": Requeue, "cancel": Wish, "kill": Wish}


async def list_jobs(engine: Engine, asker: Asker, request: Request) -> Response:
    check_parameters(request, PARAMETERS, hint=f"there are {', '.join(PARAMETERS)}")
    query = request.query_params
    asked = ListJobs(
        where=query.get("where", ""),
        sort=query.get("sort"),
        limit=number(request, "limit", 50, LONGEST_PAGE),
        after=query.get("after"),
    )
    page = await api.list_jobs(engine, asker, asked)
    return answer(JobsPage(jobs=page.jobs, after=page.after))


async def show_job(engine: Engine, asker: Asker, request: Request) -> Response:
    reply = await api.show_job(engine, asker, ShowJob(id=_id(request)))
    next = problems.in_http(reply.next)
    return answer(ShownJob(**asdict(reply.job), history=reply.history, next=next))


async def new_job(engine: Engine, asker: Asker, request: Request) -> Response:
    body = await read(request, NewJob)
    order = JobOrder(
        args=body.args,
        queue=body.queue,
        operation=body.operation,
        mode=body.mode,
        priority=body.priority,
        delay=_seconds(body.delay),
        at=None if body.at is None else from_datetime(body.at),
        unique=body.unique,
        hold=body.hold,
    )
    placed = await enqueue.enqueue_jobs(engine, asker, Enqueue(task=body.task, orders=[order]))
    (job,) = placed.jobs
    status = 201 if job.created else 200
    return answer(job, status, {"Location": f"/v1/jobs/{job.id}"})


async def act(engine: Engine, asker: Asker, request: Request) -> Response:
    """The verb is the last part of the path."""
    verb = request.url.path.rpartition("/")[2]
    wish = await read(request, WISHES[verb])
    id = str(_id(request))
    acted = await acting.act(engine, asker, Act(verb=verb, ids=[id], **asdict(wish)))
    (outcome,) = acted.outcomes
    refused = outcome.refused
    if refused is None:
        return answer(ActedOn(id=int(id), state=outcome.state))
    return problems.answer(
        problems.STATUS.get(refused.code, 409),
        refused.code,
        refused.message,
        refused.hint,
        retry_after=refused.retry_after,
    )


def _seconds(delay: float | str | None) -> float | None:
    if not isinstance(delay, str):
        return delay
    try:
        return parse_duration(delay)
    except ValueError as error:
        raise UsageProblem(f"this is no delay: {error}") from None


def _id(request: Request) -> int:
    id: int = request.path_params["id"]
    if not 0 < id <= LARGEST_ID:
        raise NotFound(f"there is no job {str(id)[:40]}", hint="`GET /v1/jobs` lists them")
    return id
