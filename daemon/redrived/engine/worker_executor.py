"""A Python attempt as the engine sees it: in a worker process that may have had others."""

from __future__ import annotations

import asyncio

from redrived.engine.attempt import Attempt, Ending
from redrived.processes.pool_worker import Worker


class WorkerExecutor:
    """Ends an attempt in a worker: first by an exception in its handler."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._tasks: set[asyncio.Task[object]] = set()

    def pids(self) -> list[int]:
        return self._worker.process.pids()

    def live_output(self, attempt: Attempt) -> str | None:
        last = self._worker.process.begun_last()
        job = attempt.job
        is_its_own = last is not None and (last.job, last.lease) == (job.id, job.lease)
        return self._worker.process.output.path if is_its_own else None

    def sample(self) -> int:
        return self._worker.process.output.size()

    def cut_output(self, attempt: Attempt, limit: int) -> None:
        if self.live_output(attempt) is not None:
            self._worker.process.output.cut(limit)

    def unkillable(self) -> tuple[int, ...]:
        return self._worker.process.left.unkillable

    def keeps_output(self) -> bool:
        return self._worker.process.keeps_output()

    def end(self, attempt: Attempt, grace: float) -> None:
        if attempt.ending is not None:
            self._worker.process.say_why(attempt.job.lease, attempt.ending)
        asked_politely = attempt.ending in (Ending.CANCEL, Ending.RESTART, Ending.DRAIN)
        if asked_politely and grace > 0:
            self._worker.cancel(attempt.job.id, attempt.job.lease, grace)
            loop = asyncio.get_running_loop()
            loop.call_later(grace, self._insist, attempt)
        else:
            self._end_worker(grace)

    def _insist(self, attempt: Attempt) -> None:
        if not attempt.is_over:
            self._end_worker(0)

    def _end_worker(self, grace: float) -> None:
        task: asyncio.Task[object] = asyncio.create_task(self._worker.end(grace))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
