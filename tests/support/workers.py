"""Real workers for tests: a pool, and an ear that remembers what its workers said."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from redrive.config.sections import Pool as PoolSettings
from redrived.processes import wire
from redrived.processes.parent import become_parent
from redrived.processes.pool import Pool
from redrived.processes.pool_worker import Loss, Worker
from redrived.processes.tree import Trees

APP = Path(__file__).parent.parent / "daemon" / "worker" / "app"
PATIENCE = 20.0  # seconds until a test gives up on a fact


def let_pass(seconds: float) -> None:
    """Nothing is waited for: this picks the moment at which two things meet."""
    moment = time.perf_counter() + seconds
    while time.perf_counter() < moment:
        pass


class Ear:
    """A listener that keeps everything, and waits for facts."""

    def __init__(self) -> None:
        self.ready_workers: list[Worker] = []
        self.reports: dict[int, wire.Report] = {}
        self.order: list[int] = []
        self.told_at_once: list[list[wire.Report]] = []
        self.begun_jobs: list[int] = []
        self.beats: list[wire.Beat] = []
        self.marks: list[str] = []
        self.asks: list[wire.Ask] = []
        self.returned: list[list[tuple[int, int]]] = []  # as they were given back
        self.returned_jobs: list[int] = []
        self.losses: list[Loss] = []
        self.answer: Callable[[wire.Ask], object] = lambda ask: None
        self.problem: str | None = None
        self._news = asyncio.Event()

    async def until(self, fact: Callable[[], object]) -> None:
        """Facts that a worker tells, and those of files and processes, which nobody tells."""
        async with asyncio.timeout(PATIENCE):
            while not fact():
                self._news.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), 0.01)

    async def report_of(self, job: int) -> wire.Report:
        await self.until(lambda: job in self.reports)
        return self.reports[job]

    def ready(self, worker: Worker) -> None:
        self.ready_workers.append(worker)
        self._news.set()

    def reported(self, worker: Worker, reports: list[wire.Report]) -> None:
        self.reports.update((report.job, report) for report in reports)
        self.order += [report.job for report in reports]
        self.told_at_once.append(reports)
        self._news.set()

    def begun(self, worker: Worker, begun: wire.Begun) -> None:
        self.begun_jobs.append(begun.job)
        self._news.set()

    def beat(self, worker: Worker, beat: wire.Beat) -> None:
        self.beats.append(beat)
        self._news.set()

    def marked(self, worker: Worker, mark: wire.Mark) -> None:
        self.marks += mark.keys
        self._news.set()

    def asked(self, worker: Worker, ask: wire.Ask) -> None:
        self.asks.append(ask)
        worker.answer(ask, self.answer(ask), self.problem)
        self._news.set()

    def gave_back(self, worker: Worker, jobs: list[tuple[int, int]]) -> None:
        self.returned.append(jobs)
        self.returned_jobs += [job for job, _ in jobs]
        self._news.set()

    def lost(self, worker: Worker, loss: Loss) -> None:
        self.losses.append(loss)
        self._news.set()


class Workshop:
    """A running pool and the shortest way to give it a job."""

    def __init__(self, pool: Pool, ear: Ear, outputs: Path) -> None:
        self.pool = pool
        self.ear = ear
        self.outputs = outputs
        self.ids = count(1)

    @property
    def worker(self) -> Worker:
        return self.pool.workers[0]

    def job(self, task: str, execution: int = 1, **args: Any) -> wire.HandedJob:
        id = next(self.ids)
        encoded = msgspec.Raw(msgspec.json.encode(args))
        return wire.HandedJob(task, id, id + 1000, 1, 3, execution, encoded)

    def give(self, task: str, execution: int = 1, **args: Any) -> int:
        job = self.job(task, execution, **args)
        self.worker.hand([job], None, begun=True)
        return job.id

    async def run(self, task: str, execution: int = 1, **args: Any) -> wire.Report:
        return await self.ear.report_of(self.give(task, execution, **args))

    async def run_all(self, jobs: list[wire.HandedJob]) -> list[wire.Report]:
        """In one hand; what a worker gives back on a busy machine is handed over again."""
        ear = self.ear
        left = jobs
        while left:
            self.worker.hand(left, 1e-6)
            ids = {job.id for job in left}
            await ear.until(lambda: {*ear.reports, *ear.returned_jobs} >= ids)  # noqa: B023
            ear.returned_jobs.clear()
            left = [job for job in left if job.id not in ear.reports]
        return [ear.reports[job.id] for job in jobs]

    async def result(self, task: str, **args: Any) -> Any:
        report = await self.run(task, **args)
        assert report.outcome == "done", report.failure
        return msgspec.json.decode(report.result)

    def output(self, report: wire.Report, execution: int = 1) -> str:
        job = report.job
        return (self.outputs / str(job // 1000) / f"{job}.{execution}.out").read_text()


def tasks_of_the_app() -> dict[str, wire.TaskFacts]:
    text = (APP / "app_handlers.py").read_text()
    names = [
        line.removeprefix("async ").removeprefix("def ").split("(")[0]
        for line in text.splitlines()
        if line.startswith(("def ", "async def "))
    ]
    return {name: wire.TaskFacts(f"app_handlers:{name}") for name in names} | {
        "unimportable": wire.TaskFacts("unimportable:task"),
        "missing": wire.TaskFacts("app_handlers:no_such_function"),
    }


@asynccontextmanager
async def workshop(
    folder: Path, *, wait: bool = True, cgroups: Any = None, **settings: Any
) -> AsyncIterator[Workshop]:
    """A pool on the application of these tests, stopped in the end."""
    become_parent()
    ear = Ear()
    outputs = folder / "outputs"
    defaults = {"path": [str(APP)], "preload": ["app_handlers"], "processes": 1}
    pool = Pool(
        "test",
        PoolSettings(**{**defaults, **settings}),
        folder=str(folder),
        outputs=str(outputs),
        trees=Trees(f"test of {folder}", cgroups=cgroups),
        listener=ear,
    )
    pool.define(tasks_of_the_app())
    pool.start()
    try:
        if wait:
            await ear.until(lambda: ear.ready_workers)
        yield Workshop(pool, ear, outputs)
    finally:
        await pool.stop(grace=0.0)
