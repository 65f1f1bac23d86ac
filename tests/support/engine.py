"""A whole engine in the test's own loop: real store, real processes, no sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from redrive.clock import Clock, SystemClock
from redrive.config import load
from redrive.models import ErrorRecord, Event, Job
from redrive.protocol.commands import Enqueue, JobOrder
from redrived.bus import Asker
from redrived.engine import intake
from redrived.engine.engine import Engine
from redrived.engine.timers import Timers
from redrived.processes.cgroups import Cgroups
from redrived.store import events, jobs
from redrived.store.enqueue import enqueue
from redrived.store.events import announced
from redrived.store.store import Store
from redrived.store.unit import Landed
from support.ends import has_ended

WITHIN = 20.0  # seconds a fact may take on a loaded machine
TESTER = Asker(who="tester", role="operator")

BASE = """
[daemon]
name = "n1"
state_dir = "./state"
runtime_dir = "./run"
concurrency = 4
"""


class Bench:
    """The engine, and what tests do with it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.heard: list[Event] = []
        self._more = asyncio.Event()
        engine.store.landed.append(self._hear)

    def _hear(self, landed: Landed) -> None:
        self.heard.extend(announced(landed))
        self._more.set()

    async def event(self, kind: str, job: int | None = None, n: int = 1) -> Event:
        """The n-th event of a type, once it has landed."""

        def found() -> Event | None:
            fits = [e for e in self.heard if e.type == kind and job in (None, e.job)]
            return fits[n - 1] if len(fits) >= n else None

        event: Event = await self.until(found, f"event {kind} of job {job}")
        return event

    async def until(self, look: Callable[[], Any], what: str) -> Any:
        """Wait for a fact that comes with something landing."""
        async with asyncio.timeout(WITHIN) as deadline:
            try:
                while not (found := look()):
                    self._more.clear()
                    await self._more.wait()
                return found
            finally:
                if deadline.expired():
                    told = [f"{e.job}:{e.type}" for e in self.heard[-20:]]
                    raise AssertionError(f"not within {WITHIN} s: {what}; heard {told}")

    async def enqueue(self, task: str, count: int = 1, **args: Any) -> list[int]:
        return await self.order(Enqueue(task=task, orders=[JobOrder(args=args)], count=count))

    async def order(self, request: Enqueue) -> list[int]:
        order = intake.order(self.engine.definitions, request, "tester", self.engine.clock.now())
        return [placed.id for placed in await self.engine.store.submit(enqueue, order)]

    async def job(self, id: int) -> Job:
        found = await self.engine.store.read(jobs.get, id)
        assert found is not None
        return found

    async def told(self, id: int) -> list[str]:
        return [event.type for event in await self.engine.store.read(events.of_job, id)]

    async def ended(self, id: int) -> Job:
        """The job, once nothing more will happen to it by itself."""

        def is_over() -> bool:
            return has_ended(event.type for event in self.heard if event.job == id)

        await self.until(is_over, f"the end of job {id}")
        return await self.job(id)

    async def failed(self, id: int) -> ErrorRecord:
        """With what the job has ended."""
        job = await self.ended(id)
        assert job.error is not None, job
        return job.error


@asynccontextmanager
async def running(folder: Path, config: str = "", base: str = BASE) -> AsyncIterator[Bench]:
    """An engine on a config, until the block ends; the same folder again is a restart."""
    async with still(folder, base + config, SystemClock()) as engine:
        bench = Bench(engine)
        async with at_work(engine):
            yield bench


@asynccontextmanager
async def still(
    folder: Path, config: str, clock: Clock, cgroups: Cgroups | None = None
) -> AsyncIterator[Engine]:
    """An engine on an open store, none of whose services does anything yet."""
    path = folder / "config.toml"
    path.write_text(config)
    (folder / "run").mkdir(exist_ok=True)
    store = Store(f"sqlite:///{folder}/state/redrive.db", clock, "n1")
    await store.open()
    timers = Timers(clock)
    timers.start()
    try:
        yield Engine(
            load(path).config,
            store,
            clock,
            timers,
            node="n1",
            epoch="test",
            state_dir=folder / "state",
            runtime_dir=folder / "run",
            drain=lambda: None,
            cgroups=cgroups,
        )
    finally:
        await timers.stop()
        await store.close()


@asynccontextmanager
async def at_work(engine: Engine) -> AsyncIterator[None]:
    services = [*engine.services, engine.dispatcher]
    try:
        for service in services:
            await service.start()
        yield
    finally:
        for service in reversed(services):
            await service.stop()
