"""The application: for each path its function, and around all of them the same care."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as Path

from redrive.errors import RedriveError, TryLater
from redrived.api.server import Asker
from redrived.engine.engine import Engine
from redrived.engine.health import Health
from redrived.http import problems
from redrived.http.access import Access
from redrived.http.bodies import answer
from redrived.http.metrics import Metrics
from redrived.http.openapi import document
from redrived.http.routes import Route, routes

PATIENCE = 30.0  # seconds that a request may take, its body included
OPERATOR = Asker(who="http:token", role="operator")
VIEWER = Asker(who="http", role="viewer")
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}

log = logging.getLogger(__name__)


def application(engine: Engine, health: Health, access: Access) -> Starlette:
    listed = routes(health, Metrics(engine, health))
    described = document(listed)

    async def openapi(engine: Engine, asker: Asker, request: Request) -> Response:
        return answer(described)

    listed.append(
        Route(
            method="GET",
            path="/openapi.json",
            endpoint=openapi,
            needs="read",
            summary="This document",
        )
    )
    by_path: dict[str, dict[str, Route]] = {}
    for route in listed:
        by_path.setdefault(route.path, {})[route.method] = route
    app = Starlette(
        routes=[_path(engine, access, path, routes) for path, routes in by_path.items()],
        exception_handlers={HTTPException: _no_such_path},
    )
    app.router.redirect_slashes = False  # to a Host nobody has checked yet
    return app


def _path(engine: Engine, access: Access, path: str, routes: Mapping[str, Route]) -> Path:
    """One for all methods, so that a refused one is told which there are."""
    whole = path.replace("jobs/{id}", "jobs/{id:int}")
    return Path(whole, _guarded(engine, access, routes), methods=[*routes])


def _guarded(
    engine: Engine, access: Access, routes: Mapping[str, Route]
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        route = routes["GET" if request.method == "HEAD" else request.method]
        try:
            async with asyncio.timeout(PATIENCE):
                access.check(request, route.needs)
                asker = OPERATOR if route.needs == "change" else VIEWER
                response = await route.endpoint(engine, asker, request)
        except TryLater as error:  # the store's trouble, not the caller's haste
            response = problems.answer(
                503, error.code, error.message, error.hint, retry_after=error.retry_after or 1.0
            )
        except RedriveError as error:
            response = problems.problem(error)
        except TimeoutError:
            response = problems.answer(503, "timeout", f"not answered within {PATIENCE:g} s")
        except Exception:
            number = secrets.token_hex(4)
            log.exception("trouble %s: %s %s", number, request.method, request.url.path)
            response = problems.answer(
                500, "internal", f"the daemon failed at this (trouble {number})"
            )
        response.headers.update(_HEADERS)
        return response

    return endpoint


async def _no_such_path(request: Request, error: Any) -> Response:
    assert isinstance(error, HTTPException)
    path, headers = request.scope["path"][:100], error.headers or {}
    if error.status_code == 405:
        title, hint = f"{path} takes no {request.method}", f"it takes {headers['Allow']}"
    else:
        title, hint = f"there is no path {path}", "`GET /openapi.json` tells of those there are"
    response = problems.answer(error.status_code, "http", title, hint)
    response.headers.update({**headers, **_HEADERS})
    return response
