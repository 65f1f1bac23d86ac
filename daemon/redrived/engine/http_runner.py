"""HTTP tasks: rendered, called, settled. A call runs in the daemon's own loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import msgspec

from redrive.clock import SECOND, Clock
from redrive.errors import RedriveError
from redrive.rules import Evidence, Said
from redrived import descriptors
from redrived.engine.attempt import Attempt, Attempts
from redrived.engine.definitions import TaskDefinition
from redrived.engine.job_facts import facts_of
from redrived.engine.rendered import rendered_call
from redrived.engine.settler import Settler
from redrived.processes.http_answer import Answered, Failed
from redrived.processes.http_call import call, names_of
from redrived.store.picking import InHand

log = logging.getLogger(__name__)


class HttpRunner:
    """Used by the main loop only."""

    def __init__(self, clock: Clock, attempts: Attempts, settler: Settler) -> None:
        self.on_begun: Callable[[Attempt], None] = lambda attempt: None
        self._clock = clock
        self._attempts = attempts
        self._settler = settler
        self._under_way = 0

    @property
    def is_short(self) -> bool:
        """Whether descriptors are too few for one more call; those under way may yet open theirs."""
        return descriptors.are_scarce(self._under_way)

    def start(self, job: InHand, definition: TaskDefinition, at: int) -> None:
        """Start a leased job; whatever comes of it is settled."""
        if self.is_short:
            self._settler.put_back(job, "few descriptors are left", has_begun=True)
            return
        try:
            assert definition.task.http is not None
            rendered = rendered_call(definition.task.http, facts_of(job))
        except RedriveError as error:
            self._settler.unfit(job, None, str(error))
            return
        except Exception as error:  # noqa: BLE001 - those leased with it are to be started
            self._settler.cannot_start(job, None, error)
            return
        calling = asyncio.create_task(call(rendered, deadline=None, now=self._clock.now() / SECOND))
        attempt = Attempt(job, definition, HttpExecutor(calling), at, self._clock.monotonic())
        # Not a task around the call: one that is cancelled before its first step does nothing.
        calling.add_done_callback(lambda called: self._called(attempt, called))
        self._under_way += 1
        self._attempts.add(attempt)
        self.on_begun(attempt)

    def _called(self, attempt: Attempt, called: asyncio.Task[Answered | Failed]) -> None:
        self._under_way -= 1
        self._attempts.pop(attempt.job.id, attempt.job.lease)
        answer = _outcome(called)
        if isinstance(answer, Answered):
            result = msgspec.to_builtins(answer)
            self._settler.answered(attempt, result, None, answer.note)
        else:
            self._settler.answered(attempt, None, _evidence(attempt.job, answer))


class HttpExecutor:
    """A call is ended by letting go of it; there is no process."""

    def __init__(self, calling: asyncio.Task[Answered | Failed]) -> None:
        self._calling = calling

    def pids(self) -> list[int]:
        return []

    def live_output(self, attempt: Attempt) -> str | None:
        return None

    def sample(self) -> int:
        return 0

    def cut_output(self, attempt: Attempt, limit: int) -> None:
        pass

    def unkillable(self) -> tuple[int, ...]:
        return ()

    def keeps_output(self) -> bool:
        return False

    def end(self, attempt: Attempt, grace: float) -> None:
        self._calling.cancel()


def _outcome(called: asyncio.Task[Answered | Failed]) -> Answered | Failed:
    if called.cancelled():
        return Failed(message="the call was ended")
    problem = called.exception()
    if problem is None:
        return called.result()
    log.error("a call failed as none should", exc_info=problem)
    return Failed(message=f"{type(problem).__name__}: {problem}", exception=names_of(problem))


def _evidence(job: InHand, failed: Failed) -> Evidence:
    return Evidence(
        task=job.task,
        stage=job.step or job.task,
        message=failed.message,
        exception=failed.exception,
        status=failed.status,
        retry_after=failed.retry_after,
        said=Said(category="permanent", type=failed.refused) if failed.refused else None,
    )
