"""Fires schedules: one timer for the earliest slot of all, the store decides who fires it.

What was missed while no daemon was there is worked out by `redrive.schedules.catch_up` from
where each schedule stands in the store. A paused schedule lets its slots pass unnoticed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from redrive.config.sections import Config, Schedule
from redrive.errors import NotFound, RedriveError
from redrive.protocol.rows import DueRow, FireRow, ScheduleRow
from redrive.schedules import CLOCK_WAS_WRONG, ON_TIME, Timing, catch_up
from redrived.engine.definitions import nearest
from redrived.engine.planned import Planned
from redrived.engine.timers import Timers
from redrived.service import Loop
from redrived.store import schedules
from redrived.store.schedules import Fire, Fired, Overlap, Slot, Waiting, adopt, fire
from redrived.store.unit import Landed

if TYPE_CHECKING:
    from redrived.engine.engine import Engine

SWEEP = 5.0  # seconds; the clock may have been set, or this node may lead now
LAST = 8  # fires shown of each schedule
ENDS = frozenset({"done", "dead", "cancelled", "failed"})  # of jobs and runs

log = logging.getLogger(__name__)


class Timetable(Loop):
    def __init__(self, engine: Engine, timers: Timers, is_leader: Callable[[], bool]) -> None:
        super().__init__()
        self._engine = engine
        self._store = engine.store
        self._clock = engine.clock
        self._timers = timers
        self._is_leader = is_leader
        self._planned: dict[str, Planned] = {}
        self._adopted: dict[str, Planned] | None = None  # those that the store knows of
        self._waiting = Waiting([], frozenset(), frozenset())

    async def start(self) -> None:
        self.use(self._engine.definitions.config)
        self._store.landed.append(self._look)
        self._timers.every("timetable sweep", SWEEP, self.wake)
        await super().start()

    def use(self, config: Config) -> None:
        """Go on with the schedules of another config."""
        self._planned = {
            name: Planned(name, schedule, Timing.of(schedule))
            for name, schedule in config.schedules.items()
        }
        self.wake()

    async def run_once(self) -> bool:
        if not self._is_leader():
            self._adopted = None
            return False
        planned = self._planned  # a reload may bring others meanwhile
        if self._adopted is not planned:
            await self._store.submit(adopt, {name: each.digest for name, each in planned.items()})
            self._adopted = planned
        await self._fire_what_is_due()
        await self._fire_what_waited()
        return False

    async def trigger(self, name: str, by: str) -> Fired:
        """Fire a schedule now, whatever its times and its last run; it stays where it is."""
        planned = self._find(name)
        now = self._clock.now()
        slot = Slot(at=now, order=planned.order(self._engine, now, by))
        [fired] = await self._store.submit(fire, Fire(schedule=name, slots=[slot], by=by))
        return fired

    async def rows(self, next_fires: int) -> list[ScheduleRow]:
        planned = list(self._planned.values())
        names = [each.name for each in planned]
        last = await self._store.read(schedules.last_fires, names, LAST)
        return [self._row(each, next_fires, last[each.name]) for each in planned]

    def due(self, until: int) -> list[DueRow]:
        """The next slot of each schedule that comes by then."""
        now = self._clock.now()
        upcoming = [
            (name, planned.timing.next_after(now))
            for name, planned in self._planned.items()
            if not self._is_paused(name)
        ]
        return [
            DueRow(at=at, kind="schedule", n=1, name=name)
            for name, at in upcoming
            if at is not None and at <= until
        ]

    # ---- firing ------------------------------------------------------------------------------

    async def _fire_what_is_due(self) -> None:
        now = self._clock.now()
        standings = await self._store.read(schedules.standings)
        upcoming: list[int] = []
        for name, planned in self._planned.items():
            standing = standings.get(name)
            if standing is None:
                continue  # another node has just adopted another config
            plan = planned.schedule
            due = catch_up(planned.timing, plan.missed, standing.last_slot, now, plan.max_missed)
            if due.next is not None:
                upcoming.append(due.next)
            if self._is_paused(name) or standing.last_slot > now + CLOCK_WAS_WRONG:
                if due.fire or due.missed_since or standing.last_slot > now:
                    await self._store.submit(fire, Fire(schedule=name, dealt_with=now))
            elif due.fire or due.missed_since is not None:
                await self._fire(planned, due.fire, due.missed_since, now)
        if upcoming:
            self._timers.at("timetable", min(upcoming), self.wake)
        else:
            self._timers.cancel("timetable")

    async def _fire(
        self, planned: Planned, slots: tuple[int, ...], missed_since: int | None, now: int
    ) -> None:
        why = "no daemon was there"
        try:
            orders = self._orders(planned, slots)
        except RedriveError as problem:
            # What it asks for cannot be; the slots are told as missed, not lost in silence.
            log.error("schedule %s cannot fire: %s", planned.name, problem)
            orders, missed_since, why = [], missed_since or min(slots, default=None), str(problem)
        item = Fire(
            schedule=planned.name,
            slots=orders,
            overlap=_overlap(planned.schedule, slots, now),
            most_queued=planned.schedule.max_missed,
            dealt_with=max(slots, default=now),
            missed_since=missed_since,
            missed_why=why,
        )
        await self._store.submit(fire, item)

    async def _fire_what_waited(self) -> None:
        """Slots that wait for the one before (`overlap = "queue"`), once it has ended."""
        self._waiting = await self._store.read(schedules.waiting)
        for name, slot in self._waiting.slots:
            planned = self._planned.get(name)
            if planned is None:
                continue
            try:
                orders = self._orders(planned, [slot])
            except RedriveError as problem:
                log.error("schedule %s cannot fire: %s", name, problem)
                continue  # it waits until what it asks for is there again
            item = Fire(schedule=name, slots=orders, overlap="queue", was_queued=True)
            if await self._store.submit(fire, item):
                self.wake()  # for those behind it

    def _orders(self, planned: Planned, slots: Iterable[int]) -> list[Slot]:
        return [Slot(at=slot, order=planned.order(self._engine, slot)) for slot in slots]

    def _look(self, landed: Landed) -> None:
        waiting = self._waiting
        if waiting.slots and any(
            state in ENDS and (job in waiting.jobs or f"r{run}" in waiting.runs)
            for _, _, job, run, _, state, _, _ in landed.events
        ):
            self.wake()

    # ---- showing -----------------------------------------------------------------------------

    def _find(self, name: str) -> Planned:
        found = self._planned.get(name)
        if found is None:
            raise NotFound(f"there is no schedule {name!r}", hint=nearest(name, self._planned))
        return found

    def _is_paused(self, name: str) -> bool:
        return self._engine.pauses.has("schedule", name)

    def _row(self, planned: Planned, next_fires: int, last: list[FireRow]) -> ScheduleRow:
        plan, pipelines = planned.schedule, self._engine.pipelines
        is_there = plan.pipeline is None or pipelines.knows(plan.pipeline)
        pause = self._engine.pauses.get("schedule", planned.name)
        return ScheduleRow(
            name=planned.name,
            what=planned.what if is_there else f"{planned.what}, not registered yet",
            words=planned.timing.describe(),
            timezone=plan.timezone,
            next=planned.next_slots(self._clock.now(), next_fires),
            last=last,
            missed=plan.missed,
            overlap=plan.overlap,
            paused=pause is not None,
            paused_by=pause.by if pause else None,
            paused_at=pause.at if pause else None,
            paused_why=pause.why if pause else None,
        )


def _overlap(plan: Schedule, slots: tuple[int, ...], now: int) -> Overlap:
    """What a slot does while the one before still runs.

    All that were missed come due at once, so `skip` would let go all but the first of them:
    they go one after the other.
    """
    is_catching_up = len(slots) > 1 or any(now - slot > ON_TIME for slot in slots)
    if plan.missed == "all" and plan.overlap == "skip" and is_catching_up:
        return "queue"
    return plan.overlap
