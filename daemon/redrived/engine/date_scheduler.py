# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
"""APScheduler as a list of dates that cannot fall asleep. The only place that knows it.

It keeps the dates in order and the loop armed for the next one; nothing is stored in it
and no job runs in it. Left alone it has habits that are dealt with here:

- An exception inside it leaves it without a wake-up, for ever. Ours arms the next one
  whatever happened.
- It waits by a clock that never steps for a time of day that may: no wait is longer than
  30 s.
- It drops what is a second late and catches up slot by slot. Here everything is a single
  date, called however late it is; what to make up for is decided in `redrive.schedules`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime

from apscheduler.executors.base import BaseExecutor
from apscheduler.job import Job
from apscheduler.jobstores.base import JobLookupError
from apscheduler.jobstores.memory import MemoryJobStore
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.schedulers.base import STATE_RUNNING, STATE_STOPPED, BaseScheduler
from apscheduler.triggers.date import DateTrigger

from redrive.clock import to_datetime

LONGEST_WAIT = 30.0
WAIT_AFTER_A_PROBLEM = 1.0

log = logging.getLogger(__name__)


class DateScheduler(AsyncIOScheduler):  # type: ignore[misc]  # it has no types
    """Named dates, each with what to call then."""

    def __init__(self) -> None:
        self._wakes_at = 0.0  # by the loop's clock
        logging.getLogger("apscheduler").setLevel(logging.WARNING)  # it tells of every move
        super().__init__(
            jobstores={"default": MemoryJobStore()},
            executors={"default": _NextTurn()},
            job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 1},
            jobstore_retry_interval=WAIT_AFTER_A_PROBLEM,
            timezone=UTC,
        )

    def remember(self, name: str, instant: int, call: Callable[[], None]) -> None:
        trigger = DateTrigger(to_datetime(instant), UTC)
        self.add_job(call, trigger, id=name, name=name, replace_existing=True)

    def forget(self, name: str) -> None:
        try:
            self.remove_job(name)
        except JobLookupError:
            pass  # due, and called on the loop's next turn

    def is_armed(self) -> bool:
        # Not `_timeout.when()`: what uvloop arms for "at once" does not know its time.
        late = asyncio.get_running_loop().time() - self._wakes_at
        return self._timeout is not None and late < WAIT_AFTER_A_PROBLEM

    def wakeup(self) -> None:
        if self.state != STATE_RUNNING:
            return
        wait: float | None = WAIT_AFTER_A_PROBLEM
        try:
            wait = self._process_jobs()
        except Exception:
            log.exception("looking for due timers failed")
        finally:
            wait = LONGEST_WAIT if wait is None else min(wait, LONGEST_WAIT)
            self._wakes_at = asyncio.get_running_loop().time() + wait
            self._start_timer(wait)

    def shutdown(self, wait: bool = False) -> None:
        if self.state != STATE_STOPPED:
            BaseScheduler.shutdown(self, wait)  # AsyncIOScheduler's own would do it later
            self._stop_timer()


class _NextTurn(BaseExecutor):  # type: ignore[misc]
    """Calls on the loop's next turn, not in the midst of APScheduler's look at its timers.

    Nor does it count instances, as executors do: `Timers` keeps calls from overlapping.
    """

    def submit_job(self, job: Job, run_times: list[datetime]) -> None:
        self._do_submit_job(job, run_times)

    def _do_submit_job(self, job: Job, run_times: list[datetime]) -> None:
        asyncio.get_running_loop().call_soon(job.func)
