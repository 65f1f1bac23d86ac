"""A worker as the dispatcher sees it: what it holds, how much more it may hold.

Everything a worker is asked to do starts here, and everything it says goes to a `Listener`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from redrived.processes import wire
from redrived.processes.tree import Ended, Trees
from redrived.processes.worker_process import BegunLast, Launch, WorkerProcess

HAND = 0.005  # seconds of work that a worker may hold
MOST_IN_HAND = 1000  # jobs, however small
EXIT_WITHIN = 10.0  # seconds for a worker that has nothing left to do
START_LONG = 10.0  # seconds after which others are started beside one that is still starting
START_WITHIN = 120.0  # seconds for the start; a preload may well take most of them
BEGIN_WITHIN = 10.0  # seconds to begin what it was handed, or to give it back

log = logging.getLogger(__name__)


class Loss(Struct, frozen=True, kw_only=True):
    """A worker has exited, and its tree with it; these were in its hand."""

    code: int  # of the exit; negative: the signal
    begun: tuple[int, int, int] | None  # job, lease, when it began
    unstarted: list[tuple[int, int]]  # job, lease
    wrote: bool  # the one that had begun has output, in its own file
    why: str = ""  # when we ended it ourselves
    oom: bool = False  # the kernel killed something of its cgroup for memory
    garbled: str = ""  # when we did because what it sent made no sense: what that was
    left: Ended = Ended()  # whom it left behind


class Listener(Protocol):
    """Who hears what workers say: the dispatcher."""

    def ready(self, worker: Worker) -> None: ...
    def reported(self, worker: Worker, reports: list[wire.Report]) -> None: ...
    def begun(self, worker: Worker, begun: wire.Begun) -> None: ...
    def beat(self, worker: Worker, beat: wire.Beat) -> None: ...
    def marked(self, worker: Worker, mark: wire.Mark) -> None: ...
    def asked(self, worker: Worker, ask: wire.Ask) -> None: ...
    def gave_back(self, worker: Worker, jobs: list[tuple[int, int]]) -> None: ...
    def lost(self, worker: Worker, loss: Loss) -> None: ...


class Owner(Protocol):
    """The pool, as far as its workers need it."""

    def got_ready(self, worker: Worker) -> None: ...
    def took_work(self, worker: Worker) -> None: ...
    def did_work(self, worker: Worker) -> None: ...
    def exited(self, worker: Worker, code: int) -> None: ...


class Worker:
    """Used by the main loop only."""

    def __init__(
        self, number: int, launch: Launch, trees: Trees, owner: Owner, listener: Listener
    ) -> None:
        """Start it; OSError when that cannot be done."""
        self.number = number
        self.preload_failed = ""  # what it could not import, and why
        self.jobs_taken = 0
        self.fault = ""  # why we ended it ourselves
        self.gone = asyncio.Event()
        self._owner = owner
        self._listener = listener
        self._is_ready = False
        self._leaving = False
        self._silence = 0.0  # seconds in which it has owed us a sign of life
        self._began: BegunLast | None = None  # as last looked at
        self._unwanted: dict[int, float] = {}  # jobs to be interrupted, and their grace
        self._last_words: list[wire.Report] = []  # to be passed on once it is gone
        self._last_call: asyncio.TimerHandle | None = None
        self._ending: asyncio.Task[Ended] | None = None
        self._hand: dict[int, wire.HandedJob] = {}  # in the order the worker takes them
        self._work = 0.0  # seconds of it, as far as it is known
        self._long: int | None = None  # the job that turned out to take longer
        self.process = WorkerProcess(
            f"{launch.pool}.{number}", launch, trees, self._heard, self._exited
        )

    @property
    def is_starting(self) -> bool:
        return not self._is_ready

    @property
    def starts_long(self) -> bool:
        """Better not wait for it."""
        return not self._is_ready and (self._leaving or self._silence > START_LONG)

    @property
    def is_busy(self) -> bool:
        return bool(self._hand)

    @property
    def is_leaving(self) -> bool:
        """It was told to go; its exit is no accident."""
        return self._leaving

    @property
    def can_work(self) -> bool:
        """Whether what it is handed now will be done, as far as one can know."""
        return self._is_ready and not self._leaving and not self.gone.is_set()

    @property
    def has_worked(self) -> bool:
        last = self.process.begun_last()
        return last is None or last.job != 0

    @property
    def share(self) -> float:
        """How much of a full hand is free: 1 when it is empty, else at least a half, or 0.

        Two hands of half the size are under way, so a worker never waits for the next one.
        """
        if not self._is_ready or self._leaving:
            return 0.0
        if not self._hand:
            return 1.0
        free = 0.0 if self._long is not None else 1.0 - self._work / HAND
        return free if free >= 0.5 else 0.0

    def hand(
        self, jobs: Sequence[wire.HandedJob], expected: float | None, *, begun: bool = False
    ) -> None:
        """Hand over jobs that take so many seconds each.

        `begun`: the first of them counts as begun already, so the worker need not announce it.
        """
        for job in jobs:
            self._hand[job.id] = job
        self._work += HAND if expected is None else expected * len(jobs)
        self.jobs_taken += len(jobs)
        self.process.send(wire.frame("hand", jobs, begun))
        self._owner.took_work(self)

    def passed(self, seconds: float) -> None:
        """Time has passed in which the daemon was awake: has the worker kept silent too long?"""
        if self.fault or self.process.is_being_ended:
            return
        before, self._began = self._began, self.process.begun_last()
        is_running = self._is_running(self._began)
        if is_running and (last := self._began) and last == before and self._long != last.job:
            self._heard(wire.Begun(last.job, last.lease, last.at))  # it cannot say so itself
        self._silence = self._silence + seconds if self._owes_a_sign(is_running) else 0.0
        if not self._is_ready and self._silence > START_WITHIN:
            self._give_up(f"it was not ready within {START_WITHIN:g} s")
        elif self._is_ready and self._silence > BEGIN_WITHIN:
            self._give_up(f"it did not begin within {BEGIN_WITHIN:g} s what it was handed")

    def take_back(self) -> None:
        """Ask for all that have not begun; `gave_back` brings them, or an empty list."""
        self.process.send(wire.frame("give_back"))

    def cancel(self, job: int, lease: int, grace: float = 0.0) -> None:
        """Interrupt the job in its handler; one that has not begun comes by `gave_back`.

        Should the handler leave processes behind, they have so many seconds to end, and the
        worker goes with them.
        """
        self._unwanted[job] = grace
        self.process.send(wire.frame("cancel", job, lease))

    def answer(self, ask: wire.Ask, value: object, problem: str | None = None) -> None:
        """Let the handler go on; a problem is raised in it."""
        self.process.send(wire.frame("answer", ask.number, value, problem))

    def announce(self, tasks: Mapping[str, wire.TaskFacts]) -> None:
        self.process.send(wire.frame("tasks", tasks))

    def stop(self) -> None:
        """Let it give back what has not begun, finish the job that runs, and exit."""
        self._leaving = True
        self.process.send(wire.frame("stop"))

    def retire(self) -> None:
        """Give it nothing more; it exits when its hand is empty."""
        if not self._leaving:
            self._leaving = True
            if not self._hand:
                self._send_home()

    async def end(self, grace: float) -> Ended:
        """SIGTERM (an exception in the handler), `grace` seconds, SIGKILL for the whole tree.

        What was in its hand comes by `lost`, as after any other exit.
        """
        self._leaving = True
        return await self.process.end(grace)

    def _heard(self, word: wire.Word) -> None:
        match word:
            case wire.Reports(reports):
                if self._goes_with_its_tree(reports):
                    self._last_words += reports
                else:
                    self._reported(reports)
            case wire.GaveBack(jobs):
                self._put_down(jobs)
                self._listener.gave_back(self, jobs)
            case wire.Begun():
                self._long = word.job
                self._listener.begun(self, word)
            case wire.Beat():
                self._listener.beat(self, word)
            case wire.Mark():
                self._listener.marked(self, word)
            case wire.Ask():
                self._listener.asked(self, word)
            case wire.Warn(text):
                log.warning("worker %s: %s", self.process.name, text)
            case wire.Ready():
                self._got_ready(word)

    def _goes_with_its_tree(self, reports: Sequence[wire.Report]) -> bool:
        """Whether an attempt that is being ended has more to it than its handler."""
        if self.process.is_being_ended or self._last_words:
            return True
        graces = [self._unwanted[job.job] for job in reports if job.job in self._unwanted]
        goes_on = any(report.goes_on for report in reports)
        if not graces or (not goes_on and self.process.is_alone()):
            return False
        self.retire()
        if len(self._hand) > len(reports):
            return False  # it goes when it has done the others, which are not to suffer
        self._end_now(max(graces))
        return True

    def _reported(self, reports: list[wire.Report]) -> None:
        self._put_down([(report.job, report.lease) for report in reports])
        self._listener.reported(self, reports)
        self._owner.did_work(self)

    def _got_ready(self, word: wire.Ready) -> None:
        self._is_ready = True
        self._silence = 0.0
        self.preload_failed = word.preload_failed
        if word.said:
            log.warning("worker %s said while starting:\n%s", self.process.name, word.said)
        self._owner.got_ready(self)
        self._listener.ready(self)

    def _owes_a_sign(self, is_running: bool) -> bool:
        """Whether it is to become ready, or to begin a job, or to give those behind it back.

        How long a job runs that has begun is not judged here. Those behind it wait with it if
        it never lets the thread run that gives them back; in a process that was stopped there
        is no such work to be waited for.
        """
        if is_running:
            return len(self._hand) > 1 and self.process.is_stopped()
        return not self._is_ready or bool(self._hand)

    def _give_up(self, fault: str) -> None:
        log.error("worker %s is ended: %s", self.process.name, fault)
        self.fault = fault
        self._leaving = True
        self._end_now()

    def _put_down(self, jobs: Sequence[tuple[int, int]]) -> None:
        self._silence = 0.0
        before = len(self._hand)
        for job, lease in jobs:
            if self._holds(job, lease):
                del self._hand[job]
                self._unwanted.pop(job, None)
        if self._long not in self._hand:
            self._long = None
        self._work = self._work * len(self._hand) / before if before else 0.0
        if self._leaving and before and not self._hand and not self.gone.is_set():
            self._send_home()

    def _send_home(self) -> None:
        """It has nothing left to do; a thread that the application left behind may hold it."""
        loop = asyncio.get_running_loop()
        self.stop()
        self._last_call = loop.call_later(EXIT_WITHIN, self._end_now)

    def _end_now(self, grace: float = 0.0) -> None:
        self._ending = asyncio.get_running_loop().create_task(self.end(grace))

    def _exited(self, code: int) -> None:
        self.gone.set()
        if self._last_words:
            self._reported(self._last_words)
        begun = self._take_begun()
        unstarted = [(job.id, job.lease) for job in self._hand.values()]
        self._hand.clear()
        if self._last_call is not None:
            self._last_call.cancel()
        wrote = begun is not None and self.process.output.keep(begun.job, begun.execution)
        self._owner.exited(self, code)
        self.process.output.remove()
        if begun or unstarted:
            loss = Loss(
                code=code,
                begun=begun and (begun.job, begun.lease, begun.at),
                unstarted=unstarted,
                wrote=wrote,
                why=self.fault,
                garbled=self.process.garbled,
                oom=self.process.ran_out_of_memory,
                left=self.process.left,
            )
            self._listener.lost(self, loss)

    def _holds(self, job: int, lease: int) -> bool:
        held = self._hand.get(job)
        return held is not None and held.lease == lease

    def _is_running(self, last: BegunLast | None) -> bool:
        """Whether a job of the hand has begun; who cannot be read does not count as silent."""
        return bool(self._hand) if last is None else self._holds(last.job, last.lease)

    def _take_begun(self) -> BegunLast | None:
        """The job that it died in, out of the hand.

        When something wrote over the page, that was most likely a job, and the first one is the
        only one that can be told to have begun: were none to count, it would run for ever.
        """
        last = self.process.begun_last()
        if last is None and self._hand:
            first = next(iter(self._hand.values()))
            now = time.time_ns() // 1000
            last = BegunLast(first.id, first.lease, first.execution, now, 0)
            log.error("worker %s: what it noted of its jobs was overwritten", self.process.name)
        if last is None or not self._holds(last.job, last.lease):
            return None
        del self._hand[last.job]
        return last
