"""Waiting for jobs and runs to end.

By asking, at first often and then twice a second: an end can be announced by a dozen kinds
of event, and a daemon that is restarted meanwhile makes no difference to a question. The first
one is answered however little time is given. Without a timeout, a daemon that stays away for
longer than a restart takes is an error; one that never was there always is.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable
from typing import Protocol, TypeVar

from redrive.errors import DaemonUnreachable, NotFound
from redrive.lifecycle import FINISHED, JobState
from redrive.models import Run
from redrive.protocol.queries import JobPage

_FIRST, _FACTOR, _LONGEST = 0.02, 1.5, 0.5  # seconds between two questions
_AT_ONCE = 200  # ids
RESTART = 60.0  # seconds in which a daemon that answered before is waited for

Id = TypeVar("Id", bound=int | str)


class Asked(Protocol):
    async def jobs(
        self, where: str = "", *, limit: int = 50, after: str | None = None
    ) -> JobPage: ...

    async def run(self, id: str) -> Run: ...


async def wait(client: Asked, ids: Iterable[Id], timeout: float | None) -> dict[Id, str]:
    ends: dict[str, str] = {}
    given = {str(id): id for id in ids}
    left = list(given)
    pause = _FIRST
    now = asyncio.get_running_loop().time
    deadline = None if timeout is None else now() + timeout
    patient_until = -math.inf  # a daemon that never was there is told of at once
    try:
        async with asyncio.timeout(None) as limit:
            while left:
                try:
                    ends |= await _ended(client, left)
                    patient_until = now() + RESTART if timeout is None else math.inf
                except DaemonUnreachable:
                    if now() > patient_until:
                        raise
                left = [id for id in left if id not in ends]
                if left:
                    limit.reschedule(deadline)
                    await asyncio.sleep(pause)
                    pause = min(pause * _FACTOR, _LONGEST)
    except TimeoutError:
        pass  # what is missing in the answer did not end in time
    return {given[id]: end for id, end in ends.items()}


async def _ended(client: Asked, ids: list[str]) -> dict[str, str]:
    ends: dict[str, str] = {}
    jobs = [id for id in ids if not id.startswith("r")]
    for start in range(0, len(jobs), _AT_ONCE):
        asked = jobs[start : start + _AT_ONCE]
        found = await _states(client, asked)
        for id in asked:
            if id not in found:
                raise NotFound(f"there is no job {id}", hint="`redrive jobs` lists them")
            if found[id] in FINISHED:
                ends[id] = str(found[id])
    for id in ids:
        if id.startswith("r"):
            run = await client.run(id)
            if run.state != "running":
                ends[id] = run.state
    return ends


async def _states(client: Asked, ids: list[str]) -> dict[str, JobState]:
    """The states of those that are there; of jobs that hold much a page has few."""
    where = f"id:{','.join(ids)}"
    page = await client.jobs(where, limit=_AT_ONCE)
    found = {str(job.id): job.state for job in page.jobs}
    while page.after is not None:
        page = await client.jobs(where, limit=_AT_ONCE, after=page.after)
        found |= {str(job.id): job.state for job in page.jobs}
    return found
