"""Counts the room there is, leases what is ready, hands it over.

Woken by facts: something became ready, something ended, a rate allows more. One lease is
under way at a time, so the limits it sees are those that hold. While nothing is ready, a lease
for the room there is stands with the writer and is made in the commit that makes something so.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Collection, Iterable
from functools import partial
from math import inf

from redrive.lifecycle import WAITING
from redrived.engine.attempt import Attempts
from redrived.engine.breaker import Breakers
from redrived.engine.command_runner import CommandRunner
from redrived.engine.definitions import COMMANDS, Definitions, TaskDefinition
from redrived.engine.http_runner import HttpRunner
from redrived.engine.pace import Pace
from redrived.engine.pauses import Began, Pauses
from redrived.engine.python_runner import PythonRunner
from redrived.engine.settler import Settler
from redrived.engine.timers import Timers
from redrived.processes.pool_worker import Worker
from redrived.service import Loop
from redrived.store.leases import Leased, lease
from redrived.store.picking import InHand, QueueRules, Room, TaskRules
from redrived.store.promote import KeyLimit, bring_forward
from redrived.store.store import Store
from redrived.store.unit import Landed

log = logging.getLogger(__name__)

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
        self._key_limits = _key_limits(definitions)
        self.is_open = True  # a drain closes it: nothing more is leased
        self._is_asking = False
        self._standing: asyncio.Future[Leased] | None = None
        self._came = -inf  # the highest priority of what came since somebody looked
        self._has_missed = False  # a wake-up, because the lease that stood was being made
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
        self._pauses.when_changed.append(self._obey)
        self._timers.every("dispatch sweep", SWEEP, self.wake)
        await super().start()
        self._store.post(bring_forward, self._key_limits)
        self.wake()

    async def stop(self) -> None:
        self._withdraw()
        await super().stop()

    @property
    def is_leasing(self) -> bool:
        """Whether a lease may land that nobody has seen yet."""
        return self._is_asking or self._standing is not None

    def close(self) -> None:
        """Lease nothing more; what is in hand and has not begun is to wait again."""
        self.is_open = False
        self._withdraw()
        self.take_back()

    def wake(self) -> None:
        """Something may be ready, or may (not) run now; room alone changes nothing of that."""
        self._woken += 1
        self._withdraw()  # before anybody hears of other rules, and enqueues
        super().wake()

    def use(self, definitions: Definitions) -> None:
        """Go on by other rules; jobs that wait behind a key may go by its new limit."""
        self.definitions = definitions
        known, self._key_limits = self._key_limits, _key_limits(definitions)
        if self._key_limits != known:
            self._store.post(bring_forward, self._key_limits)
        self.wake()

    def _obey(self, began: Began) -> None:
        """Pauses have changed: what lies unbegun in hands is not to begin."""
        if any(kind != "schedule" for kind, _ in began):
            self.take_back()
        self.wake()  # what landed was heard before it was read

    async def run_once(self) -> bool:
        self._make_way()
        if not self._withdraw():
            self._has_missed = True  # its answer wakes us
            return False
        if not self.is_open:
            if self._commands.flush():
                self._settler.freed()
            return False
        room = self.room()
        has_room = room.slots > 0 or any(room.berths.values())
        if self._is_dry_since == self._woken:
            if not self._commands.in_hand():  # else they are told together, a moment later
                self._commands.flush()
            if has_room:
                self._stand(room)
            return False
        if not has_room:
            return False  # what has ended is told with the next lease, or a moment later
        self._commands.flush()  # in one commit with the lease
        await self._ask(room)
        return False

    async def _ask(self, room: Room) -> None:
        """Lease for this room now."""
        self._is_asking = True
        woken = self._woken
        try:
            leased = await self._store.submit(lease, room)
        finally:
            self._is_asking = False
        self._use(leased, woken)

    def _stand(self, room: Room) -> None:
        self._standing = self._store.stand(lease, room)
        self._standing.add_done_callback(partial(self._stood, self._woken))

    def _stood(self, woken: int, standing: asyncio.Future[Leased]) -> None:
        """Something became ready, and has been leased for the room there was."""
        if standing.cancelled():
            return
        self._standing = None
        problem = standing.exception()
        if problem is None:
            self._use(standing.result(), woken)
        else:
            log.warning("what became ready was not leased at once: %s", problem)
            self.wake()

    def _withdraw(self) -> bool:
        """Take back the lease that stands, if any; False when that is too late."""
        if self._standing is not None:
            if not self._store.withdraw(self._standing):
                return False
            self._standing = None
        return True

    def _use(self, leased: Leased, woken: int) -> None:
        """Hand over what was leased, and see to the next lease."""
        picked = leased.picked
        self._is_dry_since = woken if leased.is_all else -1
        if not self.is_open:  # a drain began meanwhile
            self._put_back(picked.jobs(), picked.begun, "the daemon was stopped")
            return
        self._hand_over(leased)
        if leased.wake_at is not None:
            self._timers.at("rate", self._store.by_our_clock(leased.wake_at), self.wake)
        if leased.is_all:
            super().wake()  # what has ended is told, then the next one stands
        elif leased.again or picked.berths or picked.slots:
            self.wake()  # there may be more
        elif woken == self._woken and not self._has_missed:
            self._stand(self.room())  # what is ready may not run now; what comes may
        else:
            super().wake()
        self._has_missed = False

    def room(self) -> Room:
        """What could be leased now, and under which limits."""
        busy = self.busy()
        slots = self.definitions.config.daemon.concurrency - sum(busy.values())
        berths = {**self._python.berths(), COMMANDS: self._commands.berths(slots)}
        if slots <= 0 and not any(berths.values()):
            return Room(slots=slots)  # and no matter which limits
        return Room(
            slots=slots,
            berths=berths,
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
        if definition.kind == "http" and self._http.is_short:
            return None  # an end, or the next sweep, looks again
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
        begun = leased.picked.begun
        for berth in leased.picked.berths:
            worker = berth.worker
            if not isinstance(worker, Worker):
                self._commands.hand(berth, berth.jobs[0].id in begun, leased.at)
            elif worker.can_work:
                self._python.hand(berth, berth.jobs[0].id in begun, leased.at)
            else:  # it has exited since the room was counted
                self._put_back(berth.jobs, begun, "its worker had exited")
        for job in leased.picked.slots:
            definition = self.definitions.tasks.get(job.task)
            if definition is not None:
                self._http.start(job, definition, leased.at)
            else:  # a reload took it away between the lease and now
                self._settler.put_back(job, "its task is gone from the config", has_begun=True)

    def _put_back(self, jobs: Iterable[InHand], begun: Collection[int], why: str) -> None:
        unbegun: list[InHand] = []
        for job in jobs:
            if job.id in begun:
                self._settler.put_back(job, why, has_begun=True)
            else:
                unbegun.append(job)
        self._settler.gave_back(unbegun)

    def _look(self, landed: Landed) -> None:
        came = [
            self._priority(queue)
            for (queue, _, state), n in landed.moves.items()
            if n > 0 and state in WAITING
        ]
        self._came = max([*came, self._came])
        if landed.made_ready:
            self.wake()

    def _make_way(self) -> None:
        """What waits behind commands goes back for work that goes first: there is a while of it.

        What is in a worker's hand is over before it could be taken back.
        """
        came, self._came = self._came, -inf
        if any(self._priority(queue) < came for queue in self._commands.queues_held()):
            self._commands.take_back()

    def _priority(self, queue: str) -> int:
        rules = self.definitions.queue_rules.get(queue)
        return rules.priority if rules else 0


def _key_limits(definitions: Definitions) -> list[KeyLimit]:
    tasks = definitions.tasks.items()
    return [KeyLimit(name, definition.of_each_key) for name, definition in tasks]
