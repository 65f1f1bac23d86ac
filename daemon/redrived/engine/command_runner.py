"""Commands: handed to slots, rendered, started, watched through their files, settled.

A slot runs one command after the other. Tiny ones are leased ahead, as workers are handed
several jobs at once: the next starts the moment the last has ended, and no command waits for
a commit. What waits in a slot has not begun and goes back free of charge.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from math import inf
from operator import itemgetter
from typing import Any

from redrive.clock import Clock
from redrive.errors import RedriveError
from redrived.engine import said
from redrived.engine.attempt import Attempt, Attempts
from redrived.engine.definitions import TaskDefinition
from redrived.engine.job_facts import facts_of
from redrived.engine.pace import Pace
from redrived.engine.rendered import rendered_text
from redrived.engine.settler import Settler
from redrived.engine.shortage import Shortage
from redrived.engine.signs import Signs
from redrived.processes.command import Command, CommandRun, Exit
from redrived.processes.commands import Commands
from redrived.processes.environment import UnfitArguments
from redrived.processes.notify_socket import Notice
from redrived.processes.spawn import NoRoom, Unprepared
from redrived.store.begin import Begun, begin
from redrived.store.picking import Berth, InHand
from redrived.store.settle import Completed
from redrived.store.store import Store

BEGUN_AFTER = 0.02  # seconds until a command from a hand is announced as begun
GIVE_BACK_AFTER = 0.04  # seconds until what waits behind it goes back
STARTED_AT_ONCE = 4  # commands until others get their turn: beats, the bus, the watchdog
OFFERED = 0.5  # of what a slot may hold must be free, so that leases come in groups
ROOM = 0.1  # of it is worth a part in the lease for another slot
TOLD_WITHIN = 0.005  # seconds for an end to reach the store while its slot goes on


class Slot:
    """Where commands run, one at a time."""

    def __init__(self) -> None:
        self.running: Attempt | None = None
        self.waiting: deque[InHand] = deque()
        self.begun_at: int | None = None  # the first that waits has begun, as the store knows it
        self.refill_at = 0  # when so few wait, more should be leased
        self.is_long = False  # what runs takes longer than it should: nothing more is put behind
        self.look_at = inf  # by the loop's clock

    @property
    def is_low(self) -> bool:
        return len(self.waiting) <= self.refill_at and not self.is_long

    @property
    def first(self) -> InHand:
        return self.running.job if self.running else self.waiting[0]

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
        self._loop = asyncio.get_running_loop()
        self._slots: set[Slot] = set()  # the busy ones
        self._unstarted: deque[Slot] = deque()  # of these, who have yet to start their first
        self._looking: asyncio.TimerHandle | None = None  # at what takes longer than a moment
        self._done: list[Completed] = []  # not told yet
        self._late: asyncio.TimerHandle | None = None  # by then they are
        self._spent: defaultdict[str, list[float]] = defaultdict(list)  # seconds, by task
        self._shortage = Shortage(settler.freed)

    # ---- what the dispatcher asks ----------------------------------------------------------

    def berths(self, free: int) -> list[Berth]:
        """Busy slots that can hold more, then the free ones."""
        most = self._shortage.most(free)
        if self.trouble:
            return [Berth(None) for _ in range(most - len(self._unstarted))]
        return self._busy_berths() + [Berth(None) for _ in range(most)]

    def _busy_berths(self) -> list[Berth]:
        """None before one slot has come down to where it wants more; then all share the lease."""
        if not any(slot.is_low and self._share(slot) >= OFFERED for slot in self._slots):
            return []
        shares = sorted(
            ((slot, self._share(slot)) for slot in self._slots), key=itemgetter(1), reverse=True
        )
        return [Berth(slot, share, empty=False) for slot, share in shares if share >= ROOM]

    def busy(self) -> Counter[str]:
        """How many slots are busy, by the queue of what they run."""
        return Counter(slot.first.queue for slot in self._slots)

    @property
    def trouble(self) -> NoRoom | None:
        """Why commands wait, while the machine has no room for all of them."""
        return self._shortage.trouble

    @property
    def is_idle(self) -> bool:
        return not self._slots and not self._done

    def in_hand(self) -> int:
        """How many are leased and have not begun."""
        return sum(len(slot.waiting) for slot in self._slots)

    def queues_held(self) -> set[str]:
        """The queues of what is leased and has not begun."""
        return {slot.waiting[0].queue for slot in self._slots if slot.waiting}

    def hand(self, berth: Berth, begun: bool, at: int) -> None:
        """Take leased jobs over; the first of them may count as begun already."""
        slot: Slot = berth.worker or Slot()
        slot.waiting.extend(berth.jobs)
        held = len(slot.jobs())
        slot.refill_at = int(held * (1 - OFFERED) / (1 - self._share(slot)))
        if slot not in self._slots:
            slot.begun_at = at if begun else None
            self._slots.add(slot)
            self._unstarted.append(slot)
            if len(self._unstarted) == 1:
                self._loop.call_soon(self._start_some)
        elif slot.is_long:  # as nobody knew when there was room
            self._give_back(slot)

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
        counts = Counter([job.task for job in slot.jobs()])
        return 1.0 - sum(n / self._pace.slot(task) for task, n in counts.items())

    def _start_some(self) -> None:
        count = min(STARTED_AT_ONCE, len(self._unstarted))
        slots = [self._unstarted.popleft() for _ in range(count)]
        if self._unstarted:
            self._loop.call_soon(self._start_some)
        for slot in slots:
            self._start_next(slot)

    def _start_next(self, slot: Slot) -> None:
        slot.running = None
        slot.is_long = False
        slot.look_at = inf
        while slot.waiting and slot.running is None:
            if not self._shortage.may_start():
                self._put_back(slot)
                break
            begun_at, slot.begun_at = slot.begun_at, None
            slot.running = self._start(slot, slot.waiting.popleft(), begun_at)
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
                on_exit=lambda exited: self._exited(slot, attempt, executor, exited),
                on_gone=lambda: self._gone(slot, attempt),
                on_notice=(lambda notice: self._heard(attempt, notice)) if listens else None,
            )
        except NoRoom as error:
            self._settler.put_back(job, error.message, has_begun=begun_at is not None)
            self._shortage.refused(error)
            return None
        except Unprepared as error:
            self._settler.put_off(job, attempt.unlogged_begin, error)
            return None
        except UnfitArguments as error:
            self._settler.unfit(job, attempt.unlogged_begin, str(error), "validation_error")
            return None
        except RedriveError as error:
            self._settler.unfit(job, attempt.unlogged_begin, str(error))
            return None
        except Exception as error:  # noqa: BLE001 - a slot that stood still would hold up all
            self._settler.cannot_start(job, attempt.unlogged_begin, error)
            return None
        if isinstance(run, Exit):
            self._tell(self._settler.exited(attempt, run), at_once=True)
            return None
        self._shortage.started()
        executor.run = run
        self._attempts.add(attempt)
        self.on_begun(attempt)
        if not attempt.is_logged or self._pace.slot(job.task) > 1:
            self._look_in(BEGUN_AFTER, slot)
        return attempt

    def _gone(self, slot: Slot, attempt: Attempt) -> None:
        """Nothing of it runs any more. The slot goes on at once: it must not stand still."""
        self._shortage.gone()
        self._spent[attempt.job.task].append(self._clock.monotonic() - attempt.since)
        self._start_next(slot)

    def _put_back(self, slot: Slot) -> None:
        """What it has yet to start waits in its queue, where it costs nothing."""
        assert self.trouble is not None
        unbegun = list(slot.waiting)
        slot.waiting.clear()
        begun_at, slot.begun_at = slot.begun_at, None
        if begun_at is not None:
            self._settler.put_back(unbegun.pop(0), self.trouble.message, has_begun=True)
        self._settler.gave_back(unbegun)

    # ---- one command -----------------------------------------------------------------------

    def _exited(
        self, slot: Slot, attempt: Attempt, executor: CommandExecutor, exited: Exit
    ) -> None:
        executor.run = None  # or they keep each other until the garbage collector finds them
        self._attempts.pop(attempt.job.id, attempt.job.lease)
        self._signs.last(attempt.job)
        # What is leased next shares a commit with the ends, unless that may be too late.
        is_very_low = len(slot.waiting) <= slot.refill_at // 2
        self._tell(self._settler.exited(attempt, exited), at_once=is_very_low)

    def _tell(self, done: Completed | None, *, at_once: bool) -> None:
        """Let a success reach the store, in one commit with the next lease if that is soon."""
        if done is not None:
            self._done.append(done)
            if self._late is None:
                self._late = self._loop.call_later(TOLD_WITHIN, self._flush_late)
        if at_once:
            self._settler.freed()

    def _flush_late(self) -> None:
        self._late = None
        if self._done:
            if any(slot.is_low for slot in self._slots):
                self._settler.freed()  # should more be leased, it is one commit with the ends
            self._loop.call_soon(self.flush)

    def _look_in(self, seconds: float, slot: Slot) -> None:
        slot.look_at = self._loop.time() + seconds
        if self._looking is None:
            self._looking = self._loop.call_later(seconds, self._look_around)

    def _look_around(self) -> None:
        """One timer for all slots: most commands are over before anybody looks."""
        self._looking = None
        loop = self._loop
        until = loop.time() + 0.001  # its clock counts milliseconds
        for slot in [slot for slot in self._slots if slot.look_at < until]:
            self._look(slot)
        if self._looking is not None:
            self._looking.cancel()
        next_look = min((slot.look_at for slot in self._slots), default=inf)
        self._looking = loop.call_at(next_look, self._look_around) if next_look < inf else None

    def _look(self, slot: Slot) -> None:
        """It is taking longer than a moment: say that it has begun, then let the others go."""
        slot.look_at = inf
        if slot.is_long:
            self._give_back(slot)
            return
        slot.is_long = True
        if slot.running is not None and not slot.running.is_logged:
            self._log_begin(slot.running)
        self._settler.freed()  # a lease that stands may count on room behind it
        self._look_in(GIVE_BACK_AFTER - BEGUN_AFTER, slot)

    def _log_begin(self, attempt: Attempt) -> None:
        attempt.is_logged = True
        job = attempt.job
        item = Begun(job.id, job.lease, attempt.began_at, job.attempt, job.run_id)
        self._store.post(begin, item)

    def _give_back(self, slot: Slot) -> None:
        first = [] if slot.running else [slot.waiting.popleft()]  # has begun, as the store knows it
        jobs = list(slot.waiting)
        slot.waiting = deque(first)
        if jobs:
            self._settler.gave_back(jobs)

    def _heard(self, attempt: Attempt, notice: Notice) -> None:
        if not attempt.is_logged:
            self._log_begin(attempt)
        progress = said.progress_after(notice, attempt.progress)
        metrics = said.metrics_after(notice, attempt.metrics)
        self._signs.beat(attempt, self._clock.now(), progress, metrics)


class CommandExecutor:
    """A command's processes, and how they are ended and looked at."""

    def __init__(self) -> None:
        self.run: CommandRun | None = None
        self._ending: set[asyncio.Task[object]] = set()

    def pids(self) -> list[int]:
        return self.run.tree.pids() if self.run is not None else []

    def end(self, attempt: Attempt, grace: float) -> None:
        if self.run is not None:
            task: asyncio.Task[object] = asyncio.create_task(self.run.end(grace))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    def live_output(self, attempt: Attempt) -> str | None:
        return None

    def sample(self) -> int:
        return self.run.sample() if self.run is not None else 0

    def cut_output(self, attempt: Attempt, limit: int) -> None:
        if self.run is not None:
            self.run.cut_output(limit)

    def unkillable(self) -> tuple[int, ...]:
        return self.run.left.unkillable if self.run is not None else ()

    def keeps_output(self) -> bool:
        return self.run is not None and self.run.keeps_output()


def _command(job: InHand, definition: TaskDefinition) -> Command:
    task = definition.task
    facts = facts_of(job)
    line: list[str] | str
    if isinstance(task.command, list):
        line = [rendered_text(word, facts) for word in task.command]
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
