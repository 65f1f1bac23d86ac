"""Every path there is: what answers it, what it needs, and how the OpenAPI document tells of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from redrive.protocol.commands import EnqueuedJob
from redrived.api.server import Asker
from redrived.engine.engine import Engine
from redrived.engine.health import Health
from redrived.http import jobs, replies, worker
from redrived.http.access import Need
from redrived.http.bodies import answer
from redrived.http.metrics import Metrics
from redrived.http.problems import HttpProblem

Endpoint = Callable[[Engine, Asker, Request], Awaitable[Response]]

ID = {"in": "path", "name": "id", "required": True, "schema": {"type": "integer", "minimum": 1}}
RUN = {
    "in": "path",
    "name": "id",
    "required": True,
    "schema": {"type": "string", "pattern": "^r?[0-9]{1,18}$"},
}


class Route(Struct, frozen=True, kw_only=True):
    method: str
    path: str
    endpoint: Endpoint
    needs: Need
    summary: str
    parameters: tuple[Mapping[str, Any], ...] = ()
    body: type[Struct] | None = None
    replies: type[Struct] | None = None
    status: tuple[int, ...] = (200,)
    refusals: tuple[int, ...] = ()
    media: str = "application/json"


def routes(health: Health, metrics: Metrics) -> list[Route]:
    return [
        Route(
            method="GET",
            path="/healthz",
            endpoint=_healthz(health),
            needs="nothing",
            summary="Whether the daemon works",
            replies=replies.Health,
            refusals=(503,),
        ),
        Route(
            method="GET",
            path="/readyz",
            endpoint=readyz,
            needs="nothing",
            summary="Whether it takes work and starts it",
            replies=replies.Health,
            refusals=(503,),
        ),
        Route(
            method="GET",
            path="/metrics",
            endpoint=metrics.answer,
            needs="read",
            summary="Metrics in the text format of Prometheus",
            media="text/plain",
        ),
        Route(
            method="GET",
            path="/v1/jobs",
            endpoint=jobs.list_jobs,
            needs="read",
            summary="Jobs that match a filter, a page at a time",
            parameters=(
                _query("where", "queue:bulk state:dead error:timeout age>2h"),
                _query("sort", "a column, with - before it for the highest first"),
                _query("after", "as the page before said"),
                {
                    "in": "query",
                    "name": "limit",
                    "schema": {"type": "integer", "minimum": 1, "maximum": jobs.LONGEST_PAGE},
                },
            ),
            replies=replies.JobsPage,
            refusals=(400,),
        ),
        Route(
            method="POST",
            path="/v1/jobs",
            endpoint=jobs.new_job,
            needs="change",
            summary="Enqueue a job; 200 when its unique key lives already",
            body=jobs.NewJob,
            replies=EnqueuedJob,
            status=(200, 201),
            refusals=(400, 404, 413, 415, 429),
        ),
        Route(
            method="GET",
            path="/v1/jobs/{id}",
            endpoint=jobs.show_job,
            needs="read",
            summary="A job with its history",
            parameters=(ID,),
            replies=replies.ShownJob,
            refusals=(404,),
        ),
        *(
            Route(
                method="POST",
                path=f"/v1/jobs/{{id}}/{verb}",
                endpoint=jobs.act,
                needs="change",
                summary=summary,
                parameters=(ID,),
                body=jobs.WISHES[verb],
                replies=replies.ActedOn,
                refusals=(400, 404, 409, 413, 415, 429),
            )
            for verb, summary in (
                ("requeue", "Another life for a dead or cancelled job; 429 within its cooldown"),
                ("cancel", "End a job, with grace for what runs"),
                ("kill", "End a job at once"),
            )
        ),
        Route(
            method="GET",
            path="/v1/worker/runs/{id}/status",
            endpoint=worker.run_status,
            needs="read",
            summary="How a run fares",
            parameters=(RUN,),
            replies=replies.RunStatus,
            refusals=(400, 404),
        ),
        Route(
            method="GET",
            path="/v1/worker/metrics",
            endpoint=worker.metrics,
            needs="read",
            summary="How all runs fare",
            replies=replies.RunMetrics,
        ),
    ]


def _query(name: str, words: str) -> dict[str, Any]:
    return {"in": "query", "name": name, "schema": {"type": "string"}, "description": words}


def _healthz(health: Health) -> Endpoint:
    async def healthz(engine: Engine, asker: Asker, request: Request) -> Response:
        if health.ailment is not None:
            raise HttpProblem(503, health.ailment)
        return answer(replies.Health(status="ok"))

    return healthz


async def readyz(engine: Engine, asker: Asker, request: Request) -> Response:
    if engine.state != "running":
        raise HttpProblem(503, engine.state)
    if (gone := engine.unreachable()) is not None:
        raise HttpProblem(503, gone)
    return answer(replies.Health(status="ready"))
