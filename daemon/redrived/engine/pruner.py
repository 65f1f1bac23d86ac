"""Forgets what ended long enough ago, in small chunks between which work goes on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator

from redrive.clock import SECOND, Clock
from redrive.config.sections import Keep
from redrive.deciding.because import spell
from redrive.errors import RedriveError
from redrived.engine.timers import Timers
from redrived.processes.output import Outputs
from redrived.store import retention
from redrived.store.retention import CHUNK, Ended, Old
from redrived.store.store import Store

EVERY = 60.0  # seconds
HOUR = 3600 * SECOND
DAY = 24 * HOUR
RECEIPTS = HOUR // 4  # longer than anybody asks again
STARTS = 2 * DAY  # longer than any rate looks back
NODES = 7 * DAY  # of silence, after which nobody looks for a node any more
FAR_AHEAD = 3600.0  # seconds by which no clock goes wrong on its own
HELD_BACK = 3600.0  # seconds for somebody to notice that it was set

log = logging.getLogger(__name__)


class Pruner:
    """One round a minute: jobs, runs and events; once an hour what is small but many."""

    def __init__(
        self,
        store: Store,
        timers: Timers,
        clock: Clock,
        outputs: Outputs,
        *,
        keep: Callable[[], Keep],
        is_leader: Callable[[], bool],
    ) -> None:
        self._store = store
        self._timers = timers
        self._clock = clock
        self._outputs = outputs
        self._keep = keep
        self._is_leader = is_leader
        # Up to where each kind has been gone through: what is left of that belongs to runs.
        self._done: dict[str, int] = {}
        self._tidied_at = 0
        self._offset = self._clock_ahead()  # of the time of day, from the time we have been awake
        self._held_until = 0.0  # by the latter

    async def start(self) -> None:
        self._timers.every("pruner", EVERY, self.run_once)
        self._store.writer.tidy()  # a new log has to grow first

    async def stop(self) -> None:
        self._timers.cancel("pruner")

    async def run_once(self) -> int:
        """One round; how many jobs, runs and events are gone."""
        if not self._trusts_the_clock():
            return 0
        try:
            gone = await self._forget() if self._is_leader() else 0
            await self._forget_hourly()
        except RedriveError as problem:  # a store in trouble: the next round does it
            log.info("nothing is forgotten now: %s", problem)
            return 0
        if gone:
            log.info("forgot %d jobs, runs and events that ended long ago", gone)
        self._store.writer.tidy()
        return gone

    def _trusts_the_clock(self) -> bool:
        """To a clock that was set far ahead all that has ended is old: what goes is gone."""
        step = self._clock_ahead() - self._offset
        self._offset += step
        if step > FAR_AHEAD:
            self._held_until = self._clock.monotonic() + HELD_BACK
            log.warning(
                "the time of day went ahead by %s: the clock was set, or the machine slept;"
                " nothing is forgotten for %s",
                spell(step),
                spell(HELD_BACK),
            )
        elif step < -FAR_AHEAD:
            self._held_until = 0.0  # somebody has noticed
        return self._clock.monotonic() >= self._held_until

    def _clock_ahead(self) -> float:
        return self._clock.now() / SECOND - self._clock.monotonic()

    async def _forget(self) -> int:
        gone = 0
        for state, before in self._horizons():
            gone += await self._forget_ended(state, before)
        if (kept := self._keep().events) is not None:
            gone += await self._forget_events(self._clock.now() - round(kept * SECOND))
        old = self._clock.now() - RECEIPTS
        while await self._store.submit(retention.forget_receipts, old) >= CHUNK:
            pass
        return gone

    def _horizons(self) -> Iterator[tuple[str, int]]:
        keep, now = self._keep(), self._clock.now()
        for state, kept in (
            ("done", keep.done),
            ("cancelled", keep.cancelled),
            ("dead", keep.dead),
        ):
            if kept is not None:
                yield state, now - round(kept * SECOND)

    async def _forget_ended(self, state: str, before: int) -> int:
        gone = 0
        for forget, of_state in (
            (retention.forget_jobs, state),
            (retention.forget_runs, "failed" if state == "dead" else state),
        ):
            mark = f"{forget.__name__} {of_state}"
            wish = Ended(of_state, self._done.get(mark, 0), before)
            while (forgotten := await self._store.submit(forget, wish)).n:
                gone += forgotten.n
                await asyncio.to_thread(self._outputs.remove, forgotten.jobs)
            self._done[mark] = before
        return gone

    async def _forget_events(self, before: int) -> int:
        gone = 0
        wish = Old(self._done.get("events", 0), before)
        while n := await self._store.submit(retention.forget_events, wish):
            gone += n
        self._done["events"] = before
        return gone

    async def _forget_hourly(self) -> None:
        now, keep = self._clock.now(), self._keep()
        if now - self._tidied_at < HOUR:
            return
        self._tidied_at = now
        if keep.outputs is not None:
            await asyncio.to_thread(self._outputs.prune, now / SECOND - keep.outputs)
        if not self._is_leader():
            return
        while await self._store.submit(retention.forget_starts, now - STARTS) >= CHUNK:
            pass
        while await self._store.submit(retention.forget_nodes, NODES) >= CHUNK:
            pass
        if keep.events is not None:
            old = now - round(keep.events * SECOND)
            while await self._store.submit(retention.forget_traces, old) >= CHUNK:
                pass
