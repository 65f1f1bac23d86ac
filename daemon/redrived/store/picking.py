"""Which ready jobs go where: the order of DESIGN section 2, as plain arithmetic.

The dispatcher says how much room there is and which limits hold; the lease operation reads
the heads of the lanes; nothing here reads a clock, a table or a socket. A lane is one task
in one queue.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct


class InHand(NamedTuple):
    """A job as it is leased: what it takes to run it and, should it fail, to decide."""

    id: int
    rank: int
    priority: int
    available_at: int
    limit_key: str | None
    lease: int
    attempt: int
    max_attempts: int
    execution: int
    args: str
    run_id: int | None
    step: str | None
    batch: str | None
    pinned: str | None
    leased_from: str
    lost: int
    unknowns: int
    life: int
    life_started_at: int
    interruptions: int
    queue: str
    task: str

    @property
    def order(self) -> tuple[int, int, int, int]:
        return (self.rank, -self.priority, self.available_at, self.id)


class TaskRules(Struct, frozen=True, kw_only=True):
    """What limits a task; a task that may not run at all now has no rules."""

    pool: str | None = None  # None: every job takes a slot of its own
    hand: int = 1  # how many of its jobs fill a worker's hand
    concurrency: int | None = None  # of each key, when it has keys
    keyed: bool = False
    rate: tuple[int, int] | None = None  # count, microseconds
    one: bool = False  # only one of them at a time, whatever else (a breaker's probe)

    @property
    def is_limited(self) -> bool:
        return self.concurrency is not None or self.keyed or self.one


class QueueRules(Struct, frozen=True, kw_only=True):
    priority: int = 0
    reserved: int = 0
    concurrency: int | None = None
    rate: tuple[int, int] | None = None
    paused: bool = False

    @property
    def limited(self) -> bool:
        return self.concurrency is not None or self.rate is not None


class Berth:
    """A worker process with room in its hand."""

    __slots__ = ("empty", "jobs", "share", "worker")

    def __init__(self, worker: Any, share: float = 1.0, empty: bool = True) -> None:
        self.worker = worker  # whatever the dispatcher knows it by
        self.share = share  # of a full hand still free
        self.empty = empty
        self.jobs: list[InHand] = []


class Room(Struct, kw_only=True):
    """What the dispatcher offers, and the limits that hold."""

    slots: int  # how many more workers or commands may be busy
    berths: Mapping[str, Sequence[Berth]] = {}  # by pool
    tasks: Mapping[str, TaskRules] = {}
    queues: Mapping[str, QueueRules] = {}
    used: Mapping[str, int] = {}  # busy slots by queue, for what is reserved


class Running(Struct, kw_only=True):
    """What is leased now, counted from rows."""

    queues: Mapping[str, int] = {}
    tasks: Mapping[str, int] = {}
    keys: Mapping[str, int] = {}


class Picked(Struct):
    """The answer: jobs for workers, jobs with a slot of their own, jobs to park."""

    berths: list[Berth]
    slots: list[InHand]
    parked: list[int]
    begun: set[int]  # the first in an empty hand, and those with a slot: they start at once

    def jobs(self) -> Iterator[InHand]:
        for berth in self.berths:
            yield from berth.jobs
        yield from self.slots


_NO_QUEUE = QueueRules()


class Picker:
    """Fills the room, lane by lane."""

    def __init__(self, room: Room, running: Running) -> None:
        self.room = room
        self.picked = Picked([], [], [], set())
        # Filled anew when the group is done again: the room stays as it was offered.
        self._berths = {
            pool: [Berth(berth.worker, berth.share, berth.empty) for berth in berths]
            for pool, berths in room.berths.items()
        }
        self._slots = room.slots
        # What could not be placed comes next: nothing after it may make busy hands fuller, in the
        # pools that had no empty one for it, or anywhere when there was no slot. Else short jobs
        # would follow each other in every hand for ever, and none would become free for it.
        self._waited_for: set[str] = set()
        self._is_slot_waited_for = False
        self._used = dict(room.used)
        self._queues = dict(running.queues)
        self._tasks = dict(running.tasks)
        self._keys = dict(running.keys)

    def queue_rules(self, queue: str) -> QueueRules:
        return self.room.queues.get(queue, _NO_QUEUE)

    def order(self, queues: Iterable[str]) -> list[str]:
        """The queues that may run anything, the most urgent first."""
        may = (queue for queue in queues if not self.queue_rules(queue).paused)
        return sorted(may, key=lambda queue: (-self.queue_rules(queue).priority, queue))

    def bound(self, queue: str, task: str, allowance: int | None) -> int:
        """How many jobs of a lane are worth reading, at most."""
        rules = self.room.tasks.get(task)
        if rules is None:
            return 0
        limits = self._limits(queue, task, rules, allowance)
        if any(limit <= 0 for limit in limits):
            return 0
        fits = self._fits(queue, rules)
        if fits <= 0:
            self._wait_for_room(rules)
        return max(0, min([fits, *limits]))

    def _limits(self, queue: str, task: str, rules: TaskRules, allowance: int | None) -> list[int]:
        """How many more the limits allow, however much room there is."""
        bounds: list[int] = []
        queue_limit = self.queue_rules(queue).concurrency
        if queue_limit is not None:
            bounds.append(queue_limit - self._queues.get(queue, 0))
        if rules.concurrency is not None and not rules.keyed:
            bounds.append(rules.concurrency - self._tasks.get(task, 0))
        if rules.one:
            bounds.append(1 - self._tasks.get(task, 0))
        if allowance is not None:
            bounds.append(allowance)
        return bounds

    def _wait_for_room(self, rules: TaskRules) -> None:
        berths = self._berths.get(rules.pool, ()) if rules.pool is not None else ()
        if rules.pool is None or any(berth.empty and not berth.jobs for berth in berths):
            self._is_slot_waited_for = True
        else:
            self._waited_for.add(rules.pool)

    def fill(
        self,
        queue: str,
        lanes: Mapping[str, Sequence[InHand]],
        starts: int | None,
        starts_of: Mapping[str, int | None],
    ) -> list[InHand]:
        """Place the heads of a queue's lanes, in their order, as far as there is room.

        `starts` are those that the queue's rate still allows, `starts_of` those of each task.
        """
        limited = self.queue_rules(queue).limited
        if len(lanes) == 1 and not limited:
            [(task, jobs)] = lanes.items()
            if not self.room.tasks[task].keyed:
                return self._fill_lane(queue, task, jobs, starts, starts_of[task])
        placed: list[InHand] = []
        heads = list(lanes.values())
        merged: Iterable[InHand] = (
            heads[0] if len(heads) == 1 else heapq.merge(*heads, key=lambda job: job.order)
        )
        bounds = {task: self.bound(queue, task, starts_of[task]) for task in lanes}
        for job in merged:
            if starts is not None and len(placed) >= starts:
                break
            if bounds[job.task] <= 0:
                continue
            rules = self.room.tasks[job.task]
            if rules.keyed and self._key_is_full(job, rules):
                self.picked.parked.append(job.id)
                continue
            if not self._place([job], rules, alone=limited or rules.hand == 1):
                bounds[job.task] = 0
                continue
            placed.append(job)
            bounds[job.task] -= 1
            if limited:
                bounds = {task: self.bound(queue, task, left) for task, left in bounds.items()}
        return placed

    def _fill_lane(
        self, queue: str, task: str, jobs: Sequence[InHand], *starts: int | None
    ) -> list[InHand]:
        """The same for one lane whose jobs are all alike: hand by hand instead of job by job."""
        rules = self.room.tasks[task]
        allowed = min((left for left in starts if left is not None), default=None)
        most = min(len(jobs), self.bound(queue, task, allowed))
        done = 0
        while done < most:
            n = self._place(jobs[done:most], rules, alone=rules.hand == 1)
            if n == 0:
                break
            done += n
        return list(jobs[:done])

    def _key_is_full(self, job: InHand, rules: TaskRules) -> bool:
        if job.limit_key is None:
            return False
        return self._keys.get(job.limit_key, 0) >= (rules.concurrency or 1)

    def _free_slots(self, queue: str) -> int:
        """Slots this queue may take: what others have reserved and not used is theirs."""
        kept = sum(
            max(0, rules.reserved - self._used.get(name, 0))
            for name, rules in self.room.queues.items()
            if name != queue and rules.reserved
        )
        return self._slots - kept

    def _fits(self, queue: str, rules: TaskRules) -> int:
        slots = max(0, self._free_slots(queue))
        if rules.pool is None:
            return slots
        berths = self._berths.get(rules.pool, ())
        alone = rules.hand == 1 or self.queue_rules(queue).limited
        empty = sum(1 for berth in berths if berth.empty and not berth.jobs)
        if alone:
            return min(slots, empty)
        begun = sum(int(b.share * rules.hand) for b in berths if b.jobs or not b.empty)
        return begun + min(slots, empty) * rules.hand

    def _place(self, jobs: Sequence[InHand], rules: TaskRules, *, alone: bool) -> int:
        """Place the first of a lane's jobs, as many as the next hand takes; 0: there is none."""
        first, n = jobs[0], 1
        if rules.pool is None:
            if self._free_slots(first.queue) <= 0:
                self._wait_for_room(rules)
                return 0
            self._take_slot(first.queue)
            self.picked.slots.append(first)
            self.picked.begun.add(first.id)
        else:
            cost = 1.0 if alone else 1.0 / rules.hand
            berth = self._berth(first.queue, rules.pool, cost, alone)
            if berth is None:
                self._wait_for_room(rules)
                return 0
            if berth.empty and not berth.jobs:
                self.picked.begun.add(first.id)
            n = min(max(1, int(berth.share / cost)), len(jobs))
            berth.share -= n * cost
            berth.jobs += jobs[:n]
        self._queues[first.queue] = self._queues.get(first.queue, 0) + n
        self._tasks[first.task] = self._tasks.get(first.task, 0) + n
        if rules.keyed:
            for job in jobs[:n]:
                if job.limit_key is not None:
                    self._keys[job.limit_key] = self._keys.get(job.limit_key, 0) + 1
        return n

    def _berth(self, queue: str, pool: str, cost: float, alone: bool) -> Berth | None:
        for berth in self._berths.get(pool, ()):
            untouched = berth.empty and not berth.jobs
            if untouched:
                if self._free_slots(queue) <= 0:
                    continue
                self._take_slot(queue)
                self.picked.berths.append(berth)
                return berth
            may_grow = berth.empty or not (self._is_slot_waited_for or pool in self._waited_for)
            if not alone and berth.share >= cost and may_grow:
                if not berth.jobs:
                    self.picked.berths.append(berth)
                return berth
        return None

    def _take_slot(self, queue: str) -> None:
        self._slots -= 1
        self._used[queue] = self._used.get(queue, 0) + 1
