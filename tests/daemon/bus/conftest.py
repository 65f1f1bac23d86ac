from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

TESTS = str(Path(__file__).parents[2])


@pytest_asyncio.fixture
async def daemon(folder: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "support.bus_process",
        str(folder / "run"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([TESTS, os.environ.get("PYTHONPATH", "")]),
        },
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"up\n"
    yield process
    if process.returncode is None:
        process.kill()
    await process.wait()
