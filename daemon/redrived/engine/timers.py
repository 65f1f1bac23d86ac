"""Named timers: what to call, at an instant or every so often.

A watchdog calls `alive_check` once a second: it sees a scheduler that fell asleep, a time
of day that was set, and that no interval is further off than its length, so that a sweep
does not stop for the hour by which a clock was set back.

Only the loop's own thread may use any of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from redrive.clock import SECOND, Clock
from redrived.engine.date_scheduler import DateScheduler

Callback = Callable[[], object]  # a coroutine it answers with is run as a task

log = logging.getLogger(__name__)


class Timer(Struct, frozen=True, kw_only=True):
    """One setting of a name; setting the name again makes another."""

    name: str
    instant: int
    callback: Callback
    every: int | None = None  # microseconds


class Timers:
    """Calls functions, plain or async, at an instant or every so often, on the loop.

    A callback that fails is logged and stops nothing. Calls of one name never overlap: what
    is due while the last one is under way waits for its end. An interval counts from the
    end of a call to the next.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._timers: dict[str, Timer] = {}
        self._calls: dict[str, asyncio.Task[object]] = {}  # under way
        self._scheduler = DateScheduler()

    def start(self) -> None:
        self._scheduler.start()

    async def stop(self) -> None:
        """Call nothing any more; calls under way are cancelled and waited for."""
        self._timers.clear()
        self._scheduler.shutdown()
        calls = list(self._calls.values())
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)

    def at(self, name: str, instant: int, callback: Callback) -> None:
        """Call once at `instant`, at once if that is past; the same name again moves it."""
        self._set(Timer(name=name, instant=instant, callback=callback))

    def every(self, name: str, seconds: float, callback: Callback) -> None:
        """Call every so many seconds, first after as many."""
        self._set_interval(
            Timer(name=name, instant=0, callback=callback, every=round(seconds * SECOND))
        )

    def cancel(self, name: str) -> None:
        """Forget a timer; a call under way runs to its end."""
        if self._timers.pop(name, None) is not None:
            self._scheduler.forget(name)

    def alive_check(self) -> bool:
        """Look at every timer, whatever the wake-up does; false when none was armed in time."""
        was_armed = self._scheduler.is_armed()
        if not was_armed:
            log.error("the timers had no wake-up armed; it is armed again")
        now = self._clock.now()
        for timer in list(self._timers.values()):
            if timer.every is not None and timer.instant > now + timer.every:
                self._set_interval(timer)  # the clock was set back
        self._scheduler.wakeup()
        return was_armed

    def _set_interval(self, timer: Timer) -> None:
        self._set(replace(timer, instant=self._clock.now() + (timer.every or 0)))

    def _set(self, timer: Timer) -> None:
        self._timers[timer.name] = timer
        self._scheduler.remember(timer.name, timer.instant, partial(self._call, timer))

    def _call(self, timer: Timer) -> None:
        if self._timers.get(timer.name) is not timer:
            return  # cancelled or moved since APScheduler let go of it
        if under_way := self._calls.get(timer.name):
            under_way.add_done_callback(lambda _: self._call(timer))
            return
        if timer.every is None:
            del self._timers[timer.name]
        try:
            answer = timer.callback()
        except Exception:
            log.exception("the callback of timer %r failed", timer.name)
            answer = None
        if asyncio.iscoroutine(answer):
            call = asyncio.get_running_loop().create_task(answer, name=f"timer {timer.name}")
            self._calls[timer.name] = call
            call.add_done_callback(partial(self._end_call, timer))
        else:
            self._set_again(timer)

    def _end_call(self, timer: Timer, call: asyncio.Task[object]) -> None:
        del self._calls[timer.name]
        if not call.cancelled() and (problem := call.exception()):
            log.error("the callback of timer %r failed", timer.name, exc_info=problem)
        self._set_again(timer)

    def _set_again(self, timer: Timer) -> None:
        if timer.every is not None and self._timers.get(timer.name) is timer:
            self._set_interval(timer)
