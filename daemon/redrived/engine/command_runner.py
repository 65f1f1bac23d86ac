"""Commands: handed to slots, rendered, started, watched through their files, settled.

A slot runs one command after the other. Tiny ones are leased ahead, as workers are handed
several jobs at once: the next starts the moment the last has ended, and no command waits for
a commit. What waits in a slot has not begun and goes back free of charge.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from typing import Any

import msgspec

from redrive.clock import Clock
from redrive.errors import RedriveError
from redrive.templates import render
from redrived.engine.attempt import Attempt, Attempts
from redrived.engine.definitions import TaskDefinition
from redrived.engine.job_facts import facts_of
from redrived.engine.pace import Pace
from redrived.engine.settler import Settler
from redrived.engine.signs import Signs
from redrived.processes.command import Command, CommandRun, Exit
from redrived.processes.commands import Commands
from redrived.processes.environment import UnfitArguments
from redrived.processes.notify_socket import Notice
from redrived.processes.spawn import NoRoom
from redrived.store.begin import Begun, begin
from redrived.store.picking import Berth, InHand
from redrived.store.settle import Completed
from redrived.store.store import Store
from redrived.store.unit import to_json

BEGUN_AFTER = 0.02  # seconds until a command from a hand is announced as begun
GIVE_BACK_AFTER = 0.04  # seconds until what waits behind it goes back
OFFERED = 0.5  # of what a slot may hold must be free, so that leases come in groups
TOLD_WITHIN = 0.005  # seconds for an end to reach the store while its slot goes on


class Slot:
    """Where commands run, one at a time."""

    def __init__(self) -> None:
        self.running: Attempt | None = None
        self.waiting: deque[InHand] = deque()
        self.is_long = False  # what runs takes longer than it should: nothing more is put behind
        self.look_again: asyncio.TimerHandle | None = None

    def jobs(self) -> list[InHand]:
        return [*([self.running.job] if self.running else []), *self.waiting]


class CommandRunner:
    """Used by the main loop only."""

    def __init__(
        self,
        store: Store,
        commands: Commands,
        clock: Clock,
        attempts: Attempts,
        settler: Settler,
        signs: Signs,
        pace: Pace,
    ) -> None:
        self.on_begun: Callable[[Attempt], None] = lambda attempt: None
        self._store = store
        self._commands = commands
        self._clock = clock
        self._attempts = attempts
        self._settler = settler
        self._signs = signs
        self._pace = pace
        self._slots: set[Slot] = set()  # the busy ones
        self._done: list[Completed] = []  # not told yet
        self._late: asyncio.TimerHandle | None = None  # by then they are
        self._spent: defaultdict[str, list[float]] = defaultdict(list)  # seconds, by task

    # ---- what the dispatcher asks ----------------------------------------------------------

    def berths(self, free: int) -> list[Berth]:
        """Busy slots that can hold more, then the free ones."""
        shares = ((slot, self._share(slot)) for slot in self._slots)
        busy = [Berth(slot, share, empty=False) for slot, share in shares if share >= OFFERED]
        return busy + [Berth(None) for _ in range(free)]

    def busy(self) -> Counter[str]:
        """How many slots are busy, by the queue of what they run."""
        return Counter(slot.jobs()[0].queue for slot in self._slots)

    @property
    def is_idle(self) -> bool:
        return not self._slots and not self._done

    def in_hand(self) -> int:
        """How many are leased and have not begun."""
        return sum(len(slot.waiting) for slot in self._slots)

    def hand(self, berth: Berth, begun: bool, at: int) -> None:
        """Take leased jobs over; the first of them may count as begun already."""
        slot: Slot = berth.worker or Slot()
        slot.waiting.extend(berth.jobs)
        if slot.running is None:
            self._slots.add(slot)
            self._start_next(slot, at if begun else None)

    def flush(self) -> bool:
        """Tell the store of the ends that it has not heard of; whether there were any."""
        for task, spans in self._spent.items():
            self._pace.note(task, len(spans), sum(spans))
        self._spent.clear()
        if self._late is not None:
            self._late.cancel()
            self._late = None
        done, self._done = self._done, []
        self._settler.completed(done)
        return bool(done)

    def take_back(self) -> None:
        """Give back whatever waits."""
        for slot in self._slots:
            self._give_back(slot)

    # ---- one slot --------------------------------------------------------------------------

    def _share(self, slot: Slot) -> float:
        """How much of what a slot may hold is free; jobs of unknown length fill it."""
        if slot.is_long:
            return 0.0
        return 1.0 - sum(1 / self._pace.slot(job.task) for job in slot.jobs())

    def _start_next(self, slot: Slot, begun_at: int | None = None) -> None:
        slot.running = None
        slot.is_long = False
        while slot.waiting and slot.running is None:
            slot.running = self._start(slot, slot.waiting.popleft(), begun_at)
            begun_at = None
        if slot.running is None:
            self._slots.discard(slot)

    def _start(self, slot: Slot, job: InHand, begun_at: int | None) -> Attempt | None:
        """Start a leased job; None when it has come to its end already, and is settled."""
        at = self._clock.now() if begun_at is None else begun_at
        definition = self._settler.definitions.tasks.get(job.task)
        if definition is None:  # a reload took it away between the lease and now
            why = "its task is gone from the config"
            self._settler.put_back(job, why, has_begun=begun_at is not None)
            return None
        executor = CommandExecutor()
        attempt = Attempt(job, definition, executor, at, self._clock.monotonic())
        attempt.is_logged = begun_at is not None
        listens = definition.heartbeat_source == "notify"
        try:
            run = self._commands.start(
                _command(job, definition),
                (lambda notice: self._heard(attempt, notice)) if listens else None,
            )
        except NoRoom as error:
            self._settler.no_room(job, attempt.unlogged_begin, str(error))
            return None
        except UnfitArguments as error:
            self._settler.unfit(job, attempt.unlogged_begin, str(error), "validation_error")
            return None
        except RedriveError as error:
            self._settler.unfit(job, attempt.unlogged_begin, str(error))
            return None
        if isinstance(run, Exit):
            self._tell(self._settler.exited(attempt, run), at_once=True)
            return None
        executor.run = run
        run.exited.add_done_callback(lambda done: self._exited(slot, attempt, done.result()))
        self._attempts.add(attempt)
        self.on_begun(attempt)
        if not attempt.is_logged or self._pace.slot(job.task) > 1:
            self._look_in(BEGUN_AFTER, slot, attempt)
        return attempt

    def _exited(self, slot: Slot, attempt: Attempt, exited: Exit) -> None:
        if slot.look_again is not None:
            slot.look_again.cancel()
        self._attempts.pop(attempt.job.id, attempt.job.lease)
        self._spent[attempt.job.task].append(self._clock.monotonic() - attempt.since)
        self._start_next(slot)  # before all else: the slot must not stand still
        self._signs.last(attempt.job)
        self._tell(self._settler.exited(attempt, exited), at_once=self._share(slot) >= OFFERED)

    def _tell(self, done: Completed | None, *, at_once: bool) -> None:
        """Let a success reach the store, in one commit with the next lease if that is soon."""
        if done is not None:
            self._done.append(done)
            if self._late is None:
                loop = asyncio.get_running_loop()
                self._late = loop.call_later(TOLD_WITHIN, self._flush_late)
        if at_once:
            self._settler.freed()

    def _flush_late(self) -> None:
        if self.flush():
            self._settler.freed()

    def _look(self, slot: Slot, attempt: Attempt) -> None:
        """It is taking longer than a moment: say that it has begun, then let the others go."""
        if slot.is_long:
            self._give_back(slot)
            return
        slot.is_long = True
        if not attempt.is_logged:
            self._log_begin(attempt)
        self._look_in(GIVE_BACK_AFTER - BEGUN_AFTER, slot, attempt)

    def _look_in(self, seconds: float, slot: Slot, attempt: Attempt) -> None:
        loop = asyncio.get_running_loop()
        slot.look_again = loop.call_later(seconds, self._look, slot, attempt)

    def _log_begin(self, attempt: Attempt) -> None:
        attempt.is_logged = True
        job = attempt.job
        item = Begun(job.id, job.lease, attempt.began_at, job.attempt, job.run_id)
        self._store.post(begin, item)

    def _give_back(self, slot: Slot) -> None:
        jobs = list(slot.waiting)
        slot.waiting.clear()
        if jobs:
            self._settler.gave_back(jobs)

    def _heard(self, attempt: Attempt, notice: Notice) -> None:
        if not attempt.is_logged:
            self._log_begin(attempt)
        progress = None
        if notice.progress is not None or notice.status is not None:
            made = notice.progress
            text = notice.status or (made.text if made else None)
            progress = to_json(
                {"done": made and made.done, "total": made and made.total, "text": text}
            )
        metrics = to_json(notice.metrics) if notice.metrics else None
        self._signs.beat(attempt, self._clock.now(), progress, metrics)


class CommandExecutor:
    """A command's processes, and how they are ended and looked at."""

    def __init__(self) -> None:
        self.run: CommandRun | None = None
        self._ending: set[asyncio.Task[object]] = set()

    def pids(self) -> list[int]:
        return [self.run.tree.pid] if self.run is not None else []

    def end(self, attempt: Attempt, grace: float) -> None:
        if self.run is not None:
            task: asyncio.Task[object] = asyncio.create_task(self.run.end(grace))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    def live_output(self, attempt: Attempt) -> str | None:
        return None

    def sample(self) -> int:
        return self.run.sample() if self.run is not None else 0


def _command(job: InHand, definition: TaskDefinition) -> Command:
    task = definition.task
    facts = facts_of(job)
    line: list[str] | str
    if isinstance(task.command, list):
        line = [_text(render(word, facts)) for word in task.command]
    else:
        line = task.command or ""
    args: dict[str, Any] = facts["args"]
    return Command(
        job=job.id,
        lease=job.lease,
        execution=job.execution,
        attempt=job.attempt,
        line=line,
        cwd=definition.cwd,
        run=facts["run"],
        env=task.env,
        args=args,
        limits=task.limits,
    )


def _text(value: Any) -> str:
    """A word of a command line: text as it is, everything else as JSON writes it."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
