"""Whether this daemon works, as systemd's watchdog is told: proved, once a second.

`WATCHDOG=1` is sent by the loop that does the work, and only while the store answers, the
timers are armed, and no dispatch hangs. A store that is in trouble it has told of (a full
disk, a database that is away) is waited for, not restarted for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from msgspec import Struct

from redrived.engine.engine import Engine
from redrived.notify import Notifier
from redrived.store import tallies
from redrived.store.unit import Landed

TICK = 1.0  # seconds
STATUS_EVERY = 5.0  # seconds
LONGEST_SILENCE = 20.0  # seconds in which the store must have taken something: beats come every 2
LONGEST_DISPATCH = 30.0  # seconds

log = logging.getLogger(__name__)


class Symptoms(Struct, frozen=True, kw_only=True):
    """What a healthy daemon is known by."""

    lag: float = 0.0  # seconds by which the loop came late
    silence: float = 0.0  # seconds since the store took something
    store_in_trouble: bool = False  # and has said so
    timers_armed: bool = True
    dispatching: float = 0.0  # seconds that the present round has taken


def ailment(symptoms: Symptoms, patience: float) -> str | None:
    """What is wrong, if anything; `patience` is the lag that still counts as well."""
    if symptoms.lag > patience:
        return f"the loop came {symptoms.lag:.1f} s late"
    if not symptoms.timers_armed:
        return "the timers were asleep"
    if symptoms.store_in_trouble:
        return None
    if symptoms.silence > LONGEST_SILENCE:
        return f"the store has taken nothing for {symptoms.silence:.0f} s"
    if symptoms.dispatching > LONGEST_DISPATCH:
        return f"a dispatch has been under way for {symptoms.dispatching:.0f} s"
    return None


class Health:
    """Used by the main loop only."""

    def __init__(self, engine: Engine, notifier: Notifier) -> None:
        self.lag = 0.0  # the last one
        self.ailment: str | None = None
        self._engine = engine
        self._notifier = notifier
        self._last = self._landed_at = self._fed_at = engine.clock.monotonic()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        self._engine.store.landed.append(self._note)
        self._last = self._landed_at = self._engine.clock.monotonic()
        self._tasks = [asyncio.create_task(self._run(TICK, self.tick), name="health")]
        if self._notifier.is_heard:
            # Apart from the ticks: it waits for the store, and they must not.
            telling = self._run(STATUS_EVERY, self.tell_status)
            self._tasks.append(asyncio.create_task(telling, name="status"))

    async def stop(self) -> None:
        self._engine.store.landed.remove(self._note)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, every: float, step: Callable[[], Awaitable[None]]) -> None:
        while True:
            await self._engine.clock.sleep(every)
            try:
                await step()
            except Exception:  # what watches over the others must not end before them
                log.exception("the health check stumbled; it goes on")

    async def tick(self) -> None:
        now = self._engine.clock.monotonic()
        self.lag = max(0.0, now - self._last - TICK)
        self._last = now
        found = ailment(
            self._symptoms(now), patience=max(1.0, self._notifier.watchdog_every * 0.75)
        )
        if found is not None and found != self.ailment:
            log.error("%s", found)
        self.ailment = found
        every = self._notifier.watchdog_every
        if every and found is None and now - self._fed_at >= every - TICK:
            self._fed_at = now
            self._notifier.alive()

    def _symptoms(self, now: float) -> Symptoms:
        since = self._engine.dispatcher.busy_since
        return Symptoms(
            lag=self.lag,
            silence=now - self._landed_at,
            store_in_trouble=self._engine.store.writer.trouble is not None,
            timers_armed=self._engine.timers.alive_check(),
            dispatching=0.0 if since is None else asyncio.get_running_loop().time() - since,
        )

    async def tell_status(self) -> None:
        words = await self._status()
        if rejected := self._engine.reloader.rejected:
            words = f"{words}; {rejected}"
        self._notifier.status(words)

    async def _status(self) -> str:
        engine = self._engine
        if engine.state == "draining":
            return draining(engine)
        # No ailment: jobs run on, and the watchdog would cost them their attempts.
        if (gone := engine.unreachable()) is not None:
            return f"unreachable: {gone}"
        if (trouble := engine.store.writer.trouble_in_words) is not None:
            return f"waiting for the store: {trouble}"
        if self.ailment is not None:
            return f"in trouble: {self.ailment}"
        n = tallies.by_state(await engine.store.read(tallies.read))
        return (
            f"running: {n['leased']} leased, {n['queued']} queued, {n['retry']} to retry,"
            f" {n['dead']} dead"
        )

    def _note(self, landed: Landed) -> None:
        self._landed_at = self._engine.clock.monotonic()


def draining(engine: Engine) -> str:
    n = len(engine.under_way)
    return f"draining: {n} {'attempt' if n == 1 else 'attempts'} under way"
