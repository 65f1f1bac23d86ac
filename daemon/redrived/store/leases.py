"""Leasing: ready rows become attempts, in one step and in the right order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import attrgetter

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, text

from redrive.lifecycle import JobState
from redrived.store.begin import started_event
from redrived.store.due import LANES
from redrived.store.picking import InHand, Picked, Picker, Room, Running, TaskRules
from redrived.store.turns import apart
from redrived.store.unit import Unit


class Leased(Struct, frozen=True):
    """What was leased for a room, and what there is to wait for."""

    picked: Picked
    at: int
    wake_at: int | None = None  # when a rate allows more
    again: bool = False  # at once: what was in the way has been parked
    is_all: bool = False  # nothing that is ready was left


@apart()
def lease(unit: Unit, rooms: Sequence[Room]) -> list[Leased]:
    """Fill each room from the ready rows; one dispatcher asks with one room at a time."""
    return [_lease(unit, room) for room in rooms]


def _lease(unit: Unit, room: Room) -> Leased:
    lanes: dict[str, list[str]] = {}
    for queue, task in unit.execute(LANES):
        lanes.setdefault(queue, []).append(task)
    if _has_limits(room, lanes):
        unit.lock("limits")  # what is counted next must still be so at the commit
    picker = Picker(room, _running(unit, room, lanes))
    rates = Rates(unit, room)
    order = picker.order(lanes)
    is_all = len(order) == len(lanes)
    for queue in order:
        heads: dict[str, list[InHand]] = {}
        for task in lanes[queue]:
            rules = room.tasks.get(task)
            bound = picker.bound(queue, task, rates.left(queue, task))
            if rules is not None and bound > 0:
                most = max(bound, 64) if rules.keyed else bound
                heads[task] = _heads(unit, queue, task, most)
                is_all = is_all and len(heads[task]) < most
            else:
                is_all = False
        if heads:
            starts_of = {task: rates.of_task(task) for task in heads}
            placed = picker.fill(queue, heads, rates.of_queue(queue), starts_of)
            is_all = is_all and len(placed) == sum(map(len, heads.values()))
            rates.used(placed)
    _write(unit, picker.picked)
    rates.write()
    parked = bool(picker.picked.parked)
    return Leased(picker.picked, unit.now, rates.wake_at, again=parked, is_all=is_all)


class Rates:
    """How many starts the rates of queues and tasks still allow, counted from rows."""

    def __init__(self, unit: Unit, room: Room) -> None:
        self.wake_at: int | None = None
        self._unit = unit
        self._room = room
        self._left: dict[str, int] = {}
        self._starts: list[tuple[str, int]] = []

    def left(self, queue: str, task: str) -> int | None:
        lefts = (self.of_queue(queue), self.of_task(task))
        return min((left for left in lefts if left is not None), default=None)

    def of_queue(self, queue: str) -> int | None:
        rules = self._room.queues.get(queue)
        return self._of(f"queue:{queue}", rules.rate) if rules and rules.rate else None

    def of_task(self, task: str) -> int | None:
        rules = self._room.tasks.get(task)
        return self._of(f"task:{task}", rules.rate) if rules and rules.rate else None

    def used(self, jobs: Sequence[InHand]) -> None:
        if not self._left:
            return
        for job in jobs:
            for lane in (f"queue:{job.queue}", f"task:{job.task}"):
                if lane in self._left:
                    self._left[lane] -= 1
                    self._starts.append((lane, job.id))

    def write(self) -> None:
        if self._starts:
            self._unit.over(
                self._starts,
                "INSERT INTO starts (lane, at, job) SELECT r.lane, :now, r.job"
                f" FROM {self._unit.database.rows('lane', 'job bigint')}",
                now=self._unit.now,
            )

    def _of(self, lane: str, rate: tuple[int, int]) -> int:
        if lane not in self._left:
            count, per = rate
            since = self._unit.now - per
            self._unit.execute(
                "DELETE FROM starts WHERE lane = :lane AND at <= :since", lane=lane, since=since
            )
            [(used, oldest)] = self._unit.execute(
                "SELECT count(*), min(at) FROM starts WHERE lane = :lane", lane=lane
            )
            self._left[lane] = count - used
            if used >= count:
                frees = oldest + per
                self.wake_at = frees if self.wake_at is None else min(self.wake_at, frees)
        return self._left[lane]


def _has_limits(room: Room, lanes: dict[str, list[str]]) -> bool:
    """Whether anything that is ready is limited, by a count or by a rate."""
    return any(room.queues[queue].limited for queue in lanes if queue in room.queues) or any(
        rules.is_limited or rules.rate is not None for rules in _of_ready(room, lanes)
    )


def _of_ready(room: Room, lanes: dict[str, list[str]]) -> list[TaskRules]:
    ready = {task for tasks in lanes.values() for task in tasks}
    return [rules for task, rules in room.tasks.items() if task in ready]


def _running(unit: Unit, room: Room, lanes: dict[str, list[str]]) -> Running:
    """Counts of what is leased, from rows, when a limit needs them."""
    counts_queues = any(rules.concurrency is not None for rules in room.queues.values())
    if not counts_queues and not any(rules.is_limited for rules in _of_ready(room, lanes)):
        return Running()
    queues: Counter[str] = Counter()
    tasks: Counter[str] = Counter()
    keys: Counter[str] = Counter()
    for queue, task, key, n in unit.execute(
        "SELECT queue, task, limit_key, count(*) FROM jobs WHERE state = 'leased'"
        " GROUP BY queue, task, limit_key"
    ):
        queues[queue] += n
        tasks[task] += n
        if key is not None:
            keys[key] += n
    return Running(queues=queues, tasks=tasks, keys=keys)


# Those that have been given back count as none: the first attempt is the first that counts.
_LIFE_STARTED_AT = "CASE WHEN attempts = 0 THEN :now ELSE life_started_at END"
_HEADS = msgspec.json.Decoder(list[InHand])
# A text that somebody has written as a BLOB could not be told in JSON, nor could those beside it.
_HEAD = (
    "id",
    "rank",
    "priority",
    "available_at",
    "CAST(limit_key AS TEXT)",
    "lease + 1",
    "attempts + 1",
    "max_attempts",
    "executions + 1",
    "CAST(args AS TEXT)",
    "run_id",
    "CAST(step AS TEXT)",
    "CAST(batch AS TEXT)",
    "CAST(pinned AS TEXT)",
    "CAST(state AS TEXT)",
    "lost",
    "unknowns",
    "life",
    _LIFE_STARTED_AT,
    "interruptions",
    "queue",
    "task",
)
_TEXTS = ("CAST(", "queue", "task")
_FITTED_HEAD = tuple(
    column if column.startswith(_TEXTS) else f"CAST({column} AS BIGINT)" for column in _HEAD
)


def _heads(unit: Unit, queue: str, task: str, limit: int) -> list[InHand]:
    def fetch(columns: Sequence[str]) -> list[InHand]:
        return unit.fetch(
            _HEADS,
            columns,
            "FROM jobs WHERE waits = 'ready' AND queue = :queue AND task = :task"
            " ORDER BY jobs.rank, jobs.priority DESC, jobs.available_at, jobs.id LIMIT :n"
            + unit.database.skip_locked,
            queue=queue,
            task=task,
            n=limit,
            now=unit.now,
        )

    try:
        return fetch(_HEAD)
    except msgspec.ValidationError:  # somebody has put a text or a fraction for a number
        return fetch(_FITTED_HEAD)


def _write(unit: Unit, picked: Picked) -> None:
    if picked.parked:
        unit.over(
            [(id,) for id in picked.parked],
            f"UPDATE jobs SET waits = 'key' FROM {unit.database.rows('job bigint')}"
            " WHERE jobs.id = r.job",
        )
    jobs = list(picked.jobs())
    if not jobs:
        return
    begun = [job for job in jobs if job.id in picked.begun]
    unbegun = [job.id for job in jobs if job.id not in picked.begun]
    for ids, statement in (([job.id for job in begun], _BEGIN), (unbegun, _LEASE)):
        if ids:
            unit.among(ids, statement, node=unit.node, now=unit.now)
    for (queue, task, state), n in Counter(map(_LANE, jobs)).items():
        unit.moved(queue, task, state, JobState.LEASED, n)
    unit.emit_all(
        [started_event(unit.node, unit.now, job.id, job.run_id, job.attempt) for job in begun]
    )


_LANE = attrgetter("queue", "task", "leased_from")


_LEASE = (
    "UPDATE jobs SET state = 'leased', waits = NULL, leased_from = state,"
    f" life_started_at = {_LIFE_STARTED_AT},"
    " attempts = attempts + 1, lease = lease + 1, executions = executions + 1,"
    " node = :node, finished_at = NULL, ending = NULL, ending_by = NULL,"
    " ending_reason = NULL,"
    " progress = NULL, metrics = NULL, started_at = NULL, heartbeat_at = NULL WHERE id IN {ids}"
)
_BEGIN = _LEASE.replace(
    "started_at = NULL, heartbeat_at = NULL",
    "started_at = :now, heartbeat_at = :now, last_attempt_at = :now",
)


def of_node(
    connection: Connection, node: str
) -> dict[tuple[int, int], tuple[str | None, str | None]]:
    """What a node holds by its rows: (job, lease), and how it is to end, asked for by whom."""
    found = connection.execute(
        text(
            "SELECT id, lease, ending, ending_by FROM jobs WHERE state = 'leased' AND node = :node"
        ),
        {"node": node},
    )
    return {(job, lease): (ending, by) for job, lease, ending, by in found}
