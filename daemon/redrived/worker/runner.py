"""Runs handlers, one after the other, in the main thread.

A cancel comes as a signal: its handler runs in this very thread, so it can look whether the
job that runs is the one that is meant, and raises only then. Nothing can be raised into the
next job, and a handler that sleeps in a system call is woken.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from redrive.job import CurrentJob, running
from redrive.outcomes import Cancelled

from .failure import describe
from .hand import ARGS, EXECUTION, ID, LEASE, Hand, Row
from .outbox import Outbox
from .output import Output
from .page import CHECK, ENDED, IMPORTING, WHY, check_of, why_in_words
from .report import report
from .tasks import Handler, Task, Tasks, UnknownTask
from .words import Words

if TYPE_CHECKING:
    import asyncio
    from types import FrameType

FLUSH_AFTER = 5_000  # microseconds of work that a crash may repeat
INTERRUPT = signal.SIGURG  # nobody else uses it, and it is ignored by default


class Runner:
    def __init__(self, hand: Hand, outbox: Outbox, output: Output, page: Any) -> None:
        self.tasks = Tasks()
        self._hand = hand
        self._outbox = outbox
        self._words = Words(outbox)
        self._output = output
        self._page = page
        self._interrupted: Row | None = None
        self._broke_an_import = False
        self._forked = False
        self._threads = 0  # of the worker, before its first job
        self._loop: asyncio.AbstractEventLoop | None = None
        self._awaiting: asyncio.Future[Any] | None = None
        self._listen()
        os.register_at_fork(after_in_child=self._after_fork)

    def work(self) -> None:
        """Run what is in hand until told to leave."""
        hand, outbox = self._hand, self._outbox
        self._threads = threading.active_count()
        now = flushed = _monotonic()
        since_epoch = time.time_ns() // 1000 - now  # work may be here before the first wait
        while not hand.leaving:
            row = hand.take()
            if row is None:
                outbox.flush()
                self._mend()
                hand.wait()
                now = flushed = _monotonic()
                since_epoch = time.time_ns() // 1000 - now
                continue
            now = self._run(row, now, since_epoch)
            if now - flushed > FLUSH_AFTER:
                outbox.flush()
                self._mend()
                flushed = now
        outbox.flush()

    def _run(self, row: Row, began: int, since_epoch: int) -> int:
        """Run one job and leave its report in the outbox; when it ended."""
        page, at = self._page, began + since_epoch
        page[0], page[1], page[2], page[3] = record = row[ID], row[LEASE], row[EXECUTION], at
        page[CHECK] = check_of(*record)
        self._hand.began = began
        job, value, error = self._attempt(row)
        if self._forked:
            _end_child(error)
        if isinstance(error, UnknownTask):
            self._outbox.say("gave_back", [[row[ID], row[LEASE]]])
            return _monotonic()
        self.tasks.go_home()
        ended = _monotonic()
        wrote = self._output.keep(row[ID], row[EXECUTION])
        if job is not None:
            job.mark_finished()
        interrupted = row is self._interrupted
        if self._broke_an_import:
            self._hand.leave()  # what it has left half made would fail every job after this one
        took = ended - began
        try:
            goes_on = interrupted and self._goes_on()
            told = report(row, at, took, wrote, job, value, error, interrupted, goes_on)
        except Exception as broken:  # noqa: BLE001 - say, a Transient given a strange retry_after later
            told = report(row, at, took, wrote, None, None, broken, False, interrupted)
        self._outbox.report(told)
        return ended

    def _attempt(self, row: Row) -> tuple[CurrentJob | None, Any, BaseException | None]:
        hand = self._hand
        job = None
        try:
            try:
                hand.current = row
                # A cancel that came before `current` was set found nothing to interrupt.
                if hand.unwanted or hand.interrupting:
                    self._interrupt()
                name, *facts = row
                task = self.tasks.named(name)
                job = CurrentJob(self._words, task.beat_every, *facts)
                running.set(job)
                if task.plain:
                    handler = task.handler or self._load(task)
                    value = handler(**row[ARGS])
                    return job, value if value is None else self._result(value), None
                with task.surroundings():
                    try:
                        handler = task.handler or self._load(task)
                        return job, self._result(handler(**row[ARGS])), None
                    finally:
                        hand.current = None  # nothing may keep them from being taken back
            finally:
                hand.current = None
        except BaseException as error:  # noqa: BLE001 - SystemExit too ends the job, not us
            # Again, as the interruption may come just before the line above does it.
            hand.current = None
            return job, None, error

    def _load(self, task: Task) -> Handler:
        """The daemon sees that the handler has not begun, should its import never end."""
        self._page[IMPORTING] = 1
        try:
            return task.load()
        finally:
            self._page[IMPORTING] = 0

    def _result(self, value: Any) -> Any:
        """What the handler returned; an async one is run to its end."""
        if not hasattr(value, "__await__"):
            return value
        import asyncio

        loop = self._loop
        if loop is None or loop.is_closed():
            loop = self._loop = asyncio.new_event_loop()
            asyncio.set_event_loop(loop)
        awaiting = self._awaiting = asyncio.ensure_future(value, loop=loop)
        try:
            return loop.run_until_complete(awaiting)
        finally:
            if not awaiting.done():  # something else has left the loop, say a task that exits
                awaiting.cancel()
                loop.run_until_complete(asyncio.wait([awaiting]))
            self._awaiting = None

    def _mend(self) -> None:
        """What a handler may have spoilt for the next, put right now and then: it takes a while."""
        self._output.mend()
        self._listen()

    def _listen(self) -> None:
        for number in (INTERRUPT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    def _goes_on(self) -> bool:
        """Whether more than the handler may be at its work: threads, or tasks of the event loop.

        Those that earlier jobs have left count, too: this one may have lent them its work.
        """
        if self._loop is not None and not self._loop.is_closed():
            import asyncio

            self._loop.run_until_complete(asyncio.sleep(0))  # who has been cancelled ends now
            if asyncio.all_tasks(self._loop):
                return True
        return threading.active_count() > self._threads

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGTERM:
            self._hand.leave(interrupting=True)
        self._interrupt(frame)

    def _interrupt(self, frame: FrameType | None = None) -> None:
        """Raise in the handler that runs, if it is the one to go; once, so it can clean up."""
        row = self._hand.current
        if row is None or row is self._interrupted or not self._hand.must_be_interrupted(row):
            return
        self._interrupted = row
        why = why_in_words(row[LEASE], self._page[ENDED], self._page[WHY])
        if self._awaiting is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._awaiting.cancel, why)
        else:
            self._broke_an_import = _is_in_an_import(frame)
            raise Cancelled(why)

    def _after_fork(self) -> None:
        """In a child that a handler forks: what it runs is not ours, nor are its signals."""
        self._forked = True
        self._hand.leave()
        signal.signal(INTERRUPT, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _end_child(error: BaseException | None) -> None:
    """What a handler has forked and let come back here ends as it would in any other program."""
    status: object = None
    if error is not None:
        status = error.code if isinstance(error, SystemExit) else describe(error)["traceback"]
    code = status if isinstance(status, int) else int(status is not None)
    try:
        if isinstance(status, str):
            print(status.rstrip(), file=sys.stderr)
        sys.stdout.flush()
    finally:
        os._exit(code & 0xFF)


def _is_in_an_import(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _monotonic() -> int:
    return time.monotonic_ns() // 1000
