"""Keeps the workers of one interpreter.

The first worker shows whether the interpreter works at all. Others are started as the work
asks for them: whenever none is idle, as many as are busy, up to `processes`; they stay as long
as there is a task for them. A worker that dies before it has done anything is replaced more and
more slowly.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Mapping

import redrive
from redrive.config.sections import Pool as PoolSettings
from redrived.processes import wire
from redrived.processes.live_output import recover
from redrived.processes.pool_worker import START_LONG, Listener, Worker
from redrived.processes.tree import Trees
from redrived.processes.worker_process import Launch

SLOWEST_RESTART = 60.0  # seconds
SEEN_WITHIN = 1.0  # seconds for an exit to be seen; who has not gone by then cannot be killed

_HANGS = "preload: its modules must not wait for anything while they are imported"
_DIES = "python and preload: it must start, and import them; its jobs wait until it does"

log = logging.getLogger(__name__)


class Pool:
    """Used by the main loop only."""

    def __init__(
        self,
        name: str,
        settings: PoolSettings,
        *,
        folder: str,
        outputs: str,
        trees: Trees,
        listener: Listener,
    ) -> None:
        self.name = name
        self.trouble = ""  # why no worker can be started; "" when all is well
        self.advice = ""  # what to look at in its settings, while there is trouble
        self.preload_failed = ""  # what its newest worker could not import; it works all the same
        self.workers: list[Worker] = []
        self._folder = folder
        self._outputs = outputs
        self._trees = trees
        self._listener = listener
        self._settings = settings
        self._launch = self._launch_with(settings)
        self._tasks: Mapping[str, wire.TaskFacts] = {}
        self._started = 0
        self._failures = 0  # in a row, of workers that did nothing
        self._failed_last = 0  # the number of the last of them
        self._pause: asyncio.TimerHandle | None = None
        self._stopping = False

    @property
    def busy(self) -> int:
        return sum(worker.is_busy for worker in self.workers)

    def define(self, tasks: Mapping[str, wire.TaskFacts]) -> None:
        """The tasks of this pool, from now on; without any, its workers go home."""
        self._tasks = tasks
        for worker in self.workers:
            if tasks:
                worker.announce(tasks)
            else:
                worker.retire()
        if not tasks:
            self.trouble = self.preload_failed = ""
        if self._started:
            self._grow()

    def use(self, settings: PoolSettings) -> None:
        """Go on with other settings; the workers of the old ones finish what they hold."""
        if settings == self._settings:
            return
        self._settings = settings
        self._launch = self._launch_with(settings)
        for worker in self.workers:
            worker.retire()
        self._grow()

    def start(self) -> None:
        """Start the first worker; that it works is told by `Listener.ready`, else `trouble`."""
        recover(self._outputs, self.name)
        self._grow()

    async def stop(self, grace: float) -> None:
        """Let running jobs finish for so long, then end what is left."""
        self._stopping = True
        if self._pause is not None:
            self._pause.cancel()
        leaving = [asyncio.create_task(worker.gone.wait()) for worker in self.workers]
        if not leaving:
            return
        async with asyncio.TaskGroup() as ending:
            for worker in self.workers:
                if worker.is_starting:  # it holds nothing, and may never hear of it
                    ending.create_task(worker.end(0))
                else:
                    worker.stop()
            await asyncio.wait(leaving, timeout=grace)
        await asyncio.gather(*(worker.end(0) for worker in self.workers))
        _, unkillable = await asyncio.wait(leaving, timeout=SEEN_WITHIN)
        for waiting in unkillable:
            waiting.cancel()

    def passed(self, seconds: float) -> None:
        """Time has passed in which the daemon was awake: which worker has kept silent too long?"""
        for worker in list(self.workers):
            is_known = worker.starts_long
            worker.passed(seconds)
            if worker.starts_long and not is_known and not worker.is_leaving:
                since = f"worker {worker.process.name} has been starting for {START_LONG:g} s"
                self.trouble, self.advice = f"{since}; look at `preload`", _HANGS
                log.warning("pool %s: %s; it is not waited for", self.name, self.trouble)
                self._grow()

    def got_ready(self, worker: Worker) -> None:
        self.trouble = ""
        self.preload_failed = worker.preload_failed
        self._grow()

    def took_work(self, worker: Worker) -> None:
        limit = self._settings.recycle_after
        if limit is not None and worker.jobs_taken >= limit:
            worker.retire()
        self._grow()

    def did_work(self, worker: Worker) -> None:
        if worker.number > self._failed_last:
            self._failures = 0
        limit = self._settings.recycle_memory
        if limit is not None and worker.process.memory() > limit:
            worker.retire()

    def exited(self, worker: Worker, code: int) -> None:
        self.workers.remove(worker)
        if self._stopping:
            return
        if not worker.has_worked and (worker.fault or not worker.is_leaving):
            self._failed_last = worker.number
            how = worker.fault or _how_it_ended(code)
            why = f"{how}; {worker.process.output.last_lines() or 'it said nothing'}"
            self._failed(why, _HANGS if worker.fault and worker.is_starting else _DIES)
        self._grow()

    def _launch_with(self, settings: PoolSettings) -> Launch:
        return Launch(
            pool=self.name,
            python=settings.python or sys.executable,
            folder=self._folder,
            path=settings.path,
            preload=settings.preload,
            outputs=self._outputs,
            sdk=os.path.dirname(redrive.__file__),
        )

    def _grow(self) -> None:
        """See to it that one worker is idle, or about to be."""
        if self._stopping or self._pause is not None or not self._tasks:
            return
        busy = starting = 0
        for worker in self.workers:
            if worker.share == 1.0:
                self.trouble = ""
                return
            busy += worker.is_busy
            starting += worker.is_starting and not worker.starts_long
        wanted = min(max(1, busy) - starting, self._settings.processes - len(self.workers))
        for _ in range(wanted):
            self._start_worker()

    def _start_worker(self) -> None:
        self._started += 1
        try:
            worker = Worker(self._started, self._launch, self._trees, self, self._listener)
        except OSError as error:
            self._failed(str(error), "python must name an interpreter that starts")
            return
        worker.announce(self._tasks)
        self.workers.append(worker)

    def _failed(self, why: str, advice: str) -> None:
        """Try again, but more slowly each time."""
        delay = min(SLOWEST_RESTART, 2.0**self._failures)
        self._failures += 1
        others = [worker for worker in self.workers if not worker.is_starting]
        who = "not every" if others else "no"
        self.trouble = f"{who} worker stays up with {self._launch.python}: {why}"
        self.advice = advice
        log.error("pool %s: %s; again in %g s", self.name, self.trouble, delay)
        if self._pause is not None:
            self._pause.cancel()
        self._pause = asyncio.get_running_loop().call_later(delay, self._try_again)

    def _try_again(self) -> None:
        self._pause = None
        self._grow()


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"it exited with {code}"
    return f"it was killed by signal {-code} ({signal.strsignal(-code)})"
