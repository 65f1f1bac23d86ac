"""An engine at work with its HTTP side, and somebody who asks it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from redrive.protocol.commands import RunOrder, Start
from redrived.api import runs
from redrived.engine.health import Health
from redrived.http.server import HttpServer
from redrived.notify import Notifier
from support.engine import TESTER, Bench, running

TOKEN = "0123456789abcdef0123456789abcdef"
CONFIG = """
[http]
listen = "127.0.0.1:0"
{more}
[queues.bulk]
[tasks.work]
command = ["true"]
[tasks.fail]
command = ["sh", "-c", "echo 'connection refused' >&2; exit 1"]
retry = {{ max_attempts = 2, delays = ["10ms"] }}
[tasks.broken]
command = ["sh", "-c", "exit 65"]
[pipelines.good]
steps = [ {{ name = "parse", task = "work" }} ]
shows = {{ queued = "PENDING", running = "PARSING", done = "COMPLETE", failed = "FAILED" }}
[pipelines.bad]
steps = [ {{ name = "parse", task = "fail" }} ]
shows = {{ queued = "PENDING", running = "PARSING", done = "COMPLETE", failed = "FAILED" }}
[pipelines.unfit]
steps = [
  {{ name = "parse", task = "work" }},
  {{ name = "load", task = "work", args = {{ day = "{{{{ args.missing }}}}" }} }},
]
"""


class Side:
    """The parts, for tests that change one."""

    def __init__(self, bench: Bench, health: Health, server: HttpServer) -> None:
        self.bench = bench
        self.engine = bench.engine
        self.health = health
        self.address = server.address
        self._server = server
        self.client = httpx.AsyncClient(base_url=f"http://{server.address}", trust_env=False)

    async def get(self, path: str, **more: Any) -> httpx.Response:
        return await self.client.get(path, **more)

    async def post(self, path: str, body: Any = None, *, token: str = TOKEN) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return await self.client.post(path, json=body, headers=headers)

    @property
    def open_connections(self) -> int:
        assert self._server._server is not None
        return len(self._server._server.server_state.connections)

    async def run(self, pipeline: str) -> str:
        """A run of it that is over."""
        request = Start(pipeline=pipeline, orders=[RunOrder()])
        [id] = (await runs.start_runs(self.engine, TESTER, request)).runs
        ends = {"execution_completed", "execution_failed"}
        await self.bench.until(
            lambda: any(e.run == id and e.type in ends for e in self.bench.heard),
            f"the end of {id}",
        )
        return id


@asynccontextmanager
async def http_side(folder: Path, more: str = 'token_file = "token"') -> AsyncIterator[Side]:
    token = folder / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    async with running(folder, CONFIG.format(more=more)) as bench:
        http = bench.engine.definitions.config.http
        assert http is not None
        health = Health(bench.engine, Notifier())
        server = HttpServer(bench.engine, health, http)
        await server.start()
        side = Side(bench, health, server)
        try:
            async with side.client:
                yield side
        finally:
            await server.stop()
