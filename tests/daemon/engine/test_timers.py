from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from datetime import datetime, tzinfo
from typing import Self

import apscheduler.schedulers.base
import pytest
from apscheduler.jobstores.memory import MemoryJobStore

from redrive.clock import SECOND, SystemClock
from redrived.engine.timers import Timers

HOUR = 3600 * SECOND


class SettableClock(SystemClock):
    """The machine's clock, as somebody sets it."""

    set_by = 0

    def now(self) -> int:
        return super().now() + self.set_by


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SettableClock:
    """A clock that a test may set; APScheduler reads the same one."""
    clock = SettableClock()

    class Now(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return cls.fromtimestamp(clock.now() / SECOND, tz)

    monkeypatch.setattr(apscheduler.schedulers.base, "datetime", Now)
    return clock


@pytest.fixture
async def timers(clock: SettableClock) -> AsyncIterator[Timers]:
    timers = Timers(clock)
    timers.start()
    yield timers
    await timers.stop()


class Calls:
    """Counts calls and lets a test wait for the next."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._more = asyncio.Event()

    def named(self, name: str) -> Callable[[], None]:
        def call() -> None:
            self.names.append(name)
            self._more.set()

        return call

    async def wait_for(self, count: int) -> list[str]:
        async with asyncio.timeout(10):
            while len(self.names) < count:
                self._more.clear()
                await self._more.wait()
        return self.names


@pytest.fixture
def calls() -> Calls:
    return Calls()


async def test_timers_call_in_the_order_of_their_instants(
    timers: Timers, clock: SettableClock, calls: Calls
) -> None:
    now = clock.now()
    timers.at("later", now + 20_000, calls.named("later"))
    timers.at("sooner", now + 10_000, calls.named("sooner"))
    assert await calls.wait_for(2) == ["sooner", "later"]


async def test_a_timer_never_calls_before_its_instant(timers: Timers, clock: SettableClock) -> None:
    instant = clock.now() + 5_000
    called: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    timers.at("due", instant, lambda: called.set_result(clock.now()))
    assert await asyncio.wait_for(called, 10) >= instant


async def test_an_instant_that_is_past_is_called_at_once_however_long_ago(
    timers: Timers, clock: SettableClock, calls: Calls
) -> None:
    timers.at("long ago", clock.now() - 1000 * HOUR, calls.named("long ago"))
    assert await calls.wait_for(1) == ["long ago"]


async def test_setting_a_name_again_moves_its_timer(
    timers: Timers, clock: SettableClock, calls: Calls
) -> None:
    timers.at("due", clock.now() + 5_000, calls.named("first"))
    timers.at("due", clock.now() + HOUR, calls.named("moved away"))
    timers.at("due", clock.now() + 10_000, calls.named("moved back"))
    timers.at("other", clock.now() + 20_000, calls.named("other"))
    assert await calls.wait_for(2) == ["moved back", "other"]


async def test_a_timer_cancelled_in_the_moment_it_is_due_is_not_called(
    timers: Timers, clock: SettableClock, calls: Calls
) -> None:
    timers.at("cancelled", clock.now() - 1, calls.named("cancelled"))
    timers.cancel("cancelled")
    timers.cancel("never set")
    timers.at("other", clock.now() - 1, calls.named("other"))
    assert await calls.wait_for(1) == ["other"]


async def test_timers_set_before_the_start_are_kept(clock: SettableClock, calls: Calls) -> None:
    timers = Timers(clock)
    timers.at("due", clock.now(), calls.named("first"))
    timers.at("due", clock.now(), calls.named("due"))
    timers.start()
    assert await calls.wait_for(1) == ["due"]
    await timers.stop()


async def test_an_interval_calls_again_and_again_until_it_is_cancelled(
    timers: Timers, clock: SettableClock, calls: Calls
) -> None:
    timers.every("sweep", 0.001, calls.named("sweep"))
    await calls.wait_for(3)
    timers.cancel("sweep")
    count = len(calls.names)
    timers.at("other", clock.now() + 20_000, calls.named("other"))
    assert await calls.wait_for(count + 1) == ["sweep"] * count + ["other"]


async def test_a_failing_callback_is_logged_and_stops_nothing(
    timers: Timers, clock: SettableClock, calls: Calls, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        calls.named("failing")()
        raise RuntimeError("no")

    async def fail_later() -> None:
        fail()

    timers.at("plain", clock.now(), fail)
    timers.at("async", clock.now(), fail_later)
    await calls.wait_for(2)
    timers.every("sweep", 0.001, fail)
    await calls.wait_for(4)
    assert "the callback of timer 'plain' failed" in caplog.text
    assert "the callback of timer 'async' failed" in caplog.text


async def test_calls_of_one_name_wait_for_each_other(
    timers: Timers, clock: SettableClock, calls: Calls
) -> None:
    release = asyncio.Event()

    async def slow() -> None:
        calls.named("begun")()
        await release.wait()
        calls.named("ended")()

    timers.at("due", clock.now(), slow)
    await calls.wait_for(1)
    timers.at("due", clock.now(), calls.named("next"))
    timers.at("other", clock.now(), calls.named("other"))
    await calls.wait_for(2)
    release.set()
    assert await calls.wait_for(4) == ["begun", "other", "ended", "next"]


async def test_stop_cancels_what_is_under_way_and_calls_nothing_more(
    clock: SettableClock, calls: Calls
) -> None:
    timers = Timers(clock)
    timers.start()

    async def endless() -> None:
        calls.named("begun")()
        try:
            await asyncio.Event().wait()
        finally:
            calls.named("cancelled")()

    timers.every("sweep", 0.001, endless)
    await calls.wait_for(1)
    timers.at("due", clock.now(), calls.named("due"))  # in the very next turn of the loop
    await timers.stop()
    assert calls.names == ["begun", "cancelled"]
    await timers.stop()


@pytest.mark.parametrize("step", ["get_due_jobs", "remove_job", "get_next_run_time"])
async def test_an_exception_inside_the_scheduler_costs_a_second_at_most(
    timers: Timers,
    clock: SettableClock,
    calls: Calls,
    step: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    honest = getattr(MemoryJobStore, step)
    failures: list[str] = []

    def fail_once(*arguments: object) -> object:
        if not failures:
            failures.append(step)
            raise OSError("the store is away")
        return honest(*arguments)

    timers.at("before", clock.now() + 1_000, calls.named("before"))
    timers.at("after", clock.now() + 2_000, calls.named("after"))
    monkeypatch.setattr(MemoryJobStore, step, fail_once)
    assert await calls.wait_for(2) == ["before", "after"]
    assert failures == [step]
    assert "the store is away" in caplog.text
    assert timers.alive_check()


async def test_a_wake_up_that_got_lost_is_noticed_and_armed_again(
    timers: Timers, clock: SettableClock, calls: Calls, caplog: pytest.LogCaptureFixture
) -> None:
    timers.at("due", clock.now() + 1_000, calls.named("due"))
    timers._scheduler._stop_timer()  # pyright: ignore[reportPrivateUsage]
    assert not timers.alive_check()
    assert "no wake-up armed" in caplog.text
    assert await calls.wait_for(1) == ["due"]
    assert timers.alive_check()


async def test_a_clock_set_forth_is_seen_by_the_watchdog(
    timers: Timers, clock: SettableClock, calls: Calls
) -> None:
    timers.at("in an hour", clock.now() + HOUR, calls.named("in an hour"))
    clock.set_by = HOUR
    assert timers.alive_check()
    assert await calls.wait_for(1) == ["in an hour"]


async def test_a_clock_set_back_delays_dates_but_no_interval(
    timers: Timers, clock: SettableClock, calls: Calls
) -> None:
    timers.every("sweep", 0.001, calls.named("sweep"))
    date = clock.now() + 100_000
    timers.at("a date", date, calls.named("a date"))
    clock.set_by = -HOUR
    assert timers.alive_check()
    while SystemClock().now() <= date:
        await calls.wait_for(len(calls.names) + 1)
    assert set(calls.names) == {"sweep"}


async def test_no_wait_is_longer_than_half_a_minute(timers: Timers, clock: SettableClock) -> None:
    timers.at("in an hour", clock.now() + HOUR, lambda: None)
    armed = timers._scheduler._timeout.when()  # pyright: ignore[reportPrivateUsage]
    assert armed <= asyncio.get_running_loop().time() + 30


async def test_moving_a_timer_is_not_worth_a_line_in_the_log(
    timers: Timers, clock: SettableClock, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        timers.at("due", clock.now() + HOUR, lambda: None)
        timers.cancel("due")
    assert caplog.text == ""
