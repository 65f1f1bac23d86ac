"""What a real daemon tells each second of what runs."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path

from redrive import AsyncClient
from redrive.protocol.announcements import JobVitals, Vitals
from support.daemon import PATIENCE
from support.trial import Trial, trial

TASKS = """
[tasks.busy]
command = "sleep 600 & while :; do :; done"
"""


async def vitals_of(daemon: Trial, job: int, looks: int = 2) -> JobVitals:
    """Of a running job; the first look at a process has nothing to compare its time with."""
    async with (
        asyncio.timeout(PATIENCE),
        AsyncClient(daemon.config) as client,
        aclosing(client.follow(vitals=True)) as following,
    ):
        async for told in following:
            if not isinstance(told, Vitals):
                continue
            mine = [each for each in told.jobs if each.job == job and each.children]
            looks -= len(mine)
            if looks <= 0:
                return mine[0]
    raise AssertionError("nothing is told any more")


async def test_a_running_command_tells_its_processor_its_memory_and_its_children(
    tmp_path: Path,
) -> None:
    with trial(tmp_path, TASKS) as daemon:
        daemon.start()
        job = daemon.enqueue("busy")
        daemon.until_told(job, "action_started")
        vitals = await vitals_of(daemon, job)
        assert vitals.children == 1
        assert (vitals.cpu or 0) > 1  # percent
        assert (vitals.memory or 0) > 100_000
        daemon.ask.act("kill", job)
        daemon.until_ended(job)
