"""HTTP tasks in the engine: what the other side asks for is done."""

from __future__ import annotations

import asyncio
from pathlib import Path

from support.engine import running

TASKS = """
[tasks.ask]
http = {{ url = "http://127.0.0.1:{port}/" }}
retry = {{ max_attempts = 3, delays = ["50ms"], jitter = 0 }}
"""
BUSY = b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\nRetry-After: 30\r\n\r\n"


async def busy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(BUSY)
    writer.close()


async def test_nobody_is_asked_again_before_the_time_they_named(tmp_path: Path) -> None:
    async with await asyncio.start_server(busy, "127.0.0.1") as server:
        port = server.sockets[0].getsockname()[1]
        async with running(tmp_path, TASKS.format(port=port)) as bench:
            [id] = await bench.enqueue("ask")
            retry = await bench.event("step_retry", id)
            assert retry.data["delay"] >= 30
            job = await bench.job(id)
            assert job.available_at is not None
            assert job.available_at - retry.at >= 29_000_000
