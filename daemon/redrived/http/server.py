"""The HTTP side as a service: bound before anybody is told that the daemon is ready."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Generator
from contextlib import contextmanager

import uvicorn

from redrive.config.sections import Http
from redrive.errors import RedriveError
from redrived.engine.engine import Engine
from redrived.engine.health import Health
from redrived.http.access import Access, split
from redrived.http.app import application
from redrived.http.connection import Connection

MOST_AT_ONCE = 100  # connections; more are told to come back
LAST_ANSWERS = 2.0  # seconds for what is under way when the daemon stops

log = logging.getLogger(__name__)


class HttpServer:
    """Used by the main loop only."""

    def __init__(self, engine: Engine, health: Health, settings: Http) -> None:
        self.address = settings.listen  # with the port that was bound, once it is
        self._settings = settings
        self._engine = engine
        self._health = health
        self._server: _Server | None = None
        self._serving: asyncio.Task[None] | None = None
        self._bound: socket.socket | None = None

    async def start(self) -> None:
        access = Access(self._current)
        self._bound = bound = _bind(self._settings.listen)
        host, port = bound.getsockname()[:2]
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._server = _Server(
            uvicorn.Config(
                application(self._engine, self._health, access),
                http=Connection,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                limit_concurrency=MOST_AT_ONCE,
                timeout_keep_alive=15,
                timeout_graceful_shutdown=round(LAST_ANSWERS),
            )
        )
        self._serving = asyncio.create_task(self._server.serve([bound]), name="http")
        self._serving.add_done_callback(_note_end)
        log.info("listening on http://%s", self.address)

    async def stop(self) -> None:
        if self._server is not None and self._serving is not None:
            self._server.should_exit = True
            await asyncio.gather(self._serving, return_exceptions=True)
        if self._bound is not None:
            self._bound.close()  # as uvicorn does, unless it failed

    def _current(self) -> Http:
        """A reload may bring another token file or other hosts."""
        return self._engine.definitions.config.http or self._settings


def _note_end(serving: asyncio.Task[None]) -> None:
    if not serving.cancelled() and (problem := serving.exception()) is not None:
        log.critical("nobody is answered over HTTP any more: it failed", exc_info=problem)


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Signals are the supervisor's."""
        yield


def _bind(address: str) -> socket.socket:
    host, port = split(address)
    try:
        kind, *_, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.create_server(where[:2], family=kind, backlog=128)
    except OSError as error:
        raise RedriveError(
            f"nothing can listen on {address}: {error.strerror}",
            hint="[http] listen says where; another program may be there already",
        ) from error
    bound.setblocking(False)
    return bound
