"""Counts the room there is, leases what is ready, hands it over.

Woken by facts: something became ready, something ended, a rate allows more. One lease is
under way at a time, so the limits it sees are those that hold.
"""

from __future__ import annotations

from collections import Counter

from redrived.engine.attempt import Attempts
from redrived.engine.breaker import Breakers
from redrived.engine.command_runner import CommandRunner
from redrived.engine.definitions import COMMANDS, Definitions, TaskDefinition
from redrived.engine.http_runner import HttpRunner
from redrived.engine.pace import Pace
from redrived.engine.pauses import Pauses
from redrived.engine.python_runner import PythonRunner
from redrived.engine.settler import Settler
from redrived.engine.timers import Timers
from redrived.processes.pool_worker import Worker
from redrived.service import Loop
from redrived.store.leases import Leased, lease
from redrived.store.picking import Picked, QueueRules, Room, TaskRules
from redrived.store.store import Store
from redrived.store.unit import Landed

SWEEP = 5.0  # seconds; should a wake-up ever be lost


class Dispatcher(Loop):
    def __init__(
        self,
        store: Store,
        definitions: Definitions,
        *,
        attempts: Attempts,
        python: PythonRunner,
        commands: CommandRunner,
        http: HttpRunner,
        settler: Settler,
        pauses: Pauses,
        breakers: Breakers,
        pace: Pace,
        timers: Timers,
    ) -> None:
        super().__init__()
        self.definitions = definitions
        self.is_open = True  # a drain closes it: nothing more is leased
        self.is_leasing = False
        self._woken = 0
        self._is_dry_since = -1  # by `_woken`: nothing was ready then, nor has become so
        self._store = store
        self._attempts = attempts
        self._python = python
        self._commands = commands
        self._http = http
        self._settler = settler
        self._pauses = pauses
        self._breakers = breakers
        self._pace = pace
        self._timers = timers

    async def start(self) -> None:
        self._store.landed.append(self._look)
        self._settler.when_freed.append(super().wake)
        self._pauses.when_changed.append(self.wake)  # what landed was heard before it was read
        self._timers.every("dispatch sweep", SWEEP, self.wake)
        await super().start()
        self.wake()

    def wake(self) -> None:
        """Something may be ready, or may run now; that there is room alone changes nothing."""
        self._woken += 1
        super().wake()

    async def run_once(self) -> bool:
        if not self.is_open:
            if self._commands.flush():
                self._settler.freed()
            return False
        if self._is_dry_since == self._woken:
            self._commands.flush()
            return False
        room = self.room()
        if room.slots <= 0 and not any(room.berths.values()):
            return False  # what has ended is told with the next lease, or a moment later
        self._commands.flush()  # in one commit with the lease
        self.is_leasing = True
        woken = self._woken
        try:
            leased = await self._store.submit(lease, room)
        finally:
            self.is_leasing = False
        if not self.is_open:  # a drain began meanwhile
            self._put_back(leased.picked)
            return False
        self._hand_over(leased)
        if leased.wake_at is not None:
            self._timers.at("rate", leased.wake_at, self.wake)
        if leased.is_all:
            self._is_dry_since = woken
            return False
        picked = leased.picked
        return leased.again or bool(picked.berths or picked.slots)

    def room(self) -> Room:
        """What could be leased now, and under which limits."""
        busy = self.busy()
        slots = self.definitions.config.daemon.concurrency - sum(busy.values())
        return Room(
            slots=slots,
            berths={**self._python.berths(), COMMANDS: self._commands.berths(slots)},
            tasks={name: rules for name in self.definitions.tasks if (rules := self._rules(name))},
            queues=self._queues(),
            used=busy,
        )

    def busy(self) -> Counter[str]:
        """Busy slots by queue: a worker is one, whatever it holds."""
        busy = self._python.busy() + self._commands.busy()
        for attempt in self._attempts:
            if attempt.definition.berth is None:
                busy[attempt.job.queue] += 1
        return busy

    def take_back(self) -> None:
        """What lies in a hand and has not begun is to wait again."""
        self._python.take_back()
        self._commands.take_back()

    def _rules(self, name: str) -> TaskRules | None:
        """The limits of a task; None while it may not run at all."""
        probing = self._breakers.is_probing(name)
        if self._pauses.has("task", name) or (self._breakers.is_open(name) and not probing):
            return None
        definition = self.definitions.tasks[name]
        task = definition.task
        return TaskRules(
            pool=definition.berth,
            hand=1 if definition.is_limited else self._hand(definition),
            concurrency=task.concurrency,
            keyed=task.concurrency_key is not None,
            rate=definition.rate,
            one=probing,
        )

    def _hand(self, definition: TaskDefinition) -> int:
        pace = self._pace
        return (pace.slot if definition.kind == "command" else pace.hand)(definition.name)

    def _queues(self) -> dict[str, QueueRules]:
        rules = dict(self.definitions.queue_rules)
        for name in self._pauses.names("queue"):
            rules[name] = QueueRules(paused=True)
        return rules

    def _hand_over(self, leased: Leased) -> None:
        for berth in leased.picked.berths:
            runner = self._python if isinstance(berth.worker, Worker) else self._commands
            runner.hand(berth, berth.jobs[0].id in leased.picked.begun, leased.at)
        for job in leased.picked.slots:
            definition = self.definitions.tasks.get(job.task)
            if definition is not None:
                self._http.start(job, definition, leased.at)
            else:  # a reload took it away between the lease and now
                self._settler.put_back(job, "its task is gone from the config", has_begun=True)

    def _put_back(self, picked: Picked) -> None:
        begun = [job for job in picked.jobs() if job.id in picked.begun]
        for job in begun:
            self._settler.put_back(job, "the daemon was stopped", has_begun=True)
        self._settler.gave_back([job for job in picked.jobs() if job.id not in picked.begun])

    def _look(self, landed: Landed) -> None:
        if landed.made_ready:
            self.wake()
