"""How many commands are tried while the machine has no room for one more."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable

import pytest

from redrived.engine.shortage import LONGEST_REST, REST, Shortage
from redrived.processes.spawn import no_room

FULL = no_room(OSError(errno.EMFILE, "Too many open files"))


class Rests:
    """The loop's timers, which end when the test says so."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._call: Callable[[], None] = lambda: None

    def call_later(self, seconds: float, call: Callable[[], None]) -> asyncio.Handle:
        self.seconds.append(seconds)
        self._call = call
        return asyncio.Handle(call, (), asyncio.get_running_loop())

    def end(self) -> None:
        self._call()


@pytest.fixture
async def rests(monkeypatch: pytest.MonkeyPatch) -> Rests:
    rests = Rests()
    monkeypatch.setattr(asyncio.get_running_loop(), "call_later", rests.call_later)
    return rests


@pytest.fixture
async def short(rests: Rests) -> Shortage:
    """One that has just begun."""
    shortage = Shortage(lambda: None)
    assert shortage.most(9) == 9
    assert shortage.may_start()
    shortage.refused(FULL)
    return shortage


async def test_nothing_is_tried_until_the_rest_is_over(short: Shortage, rests: Rests) -> None:
    assert short.trouble is FULL
    assert short.most(9) == 0
    assert not short.may_start()
    rests.end()
    assert short.most(9) == 1
    assert short.may_start()


async def test_one_may_start_where_another_has_ended(short: Shortage) -> None:
    short.gone()
    assert short.most(9) == 1
    short.started()
    assert short.most(9) == 0
    assert short.trouble is FULL


async def test_each_rest_is_twice_as_long_up_to_the_longest(short: Shortage, rests: Rests) -> None:
    for _ in range(8):
        rests.end()
        short.refused(FULL)
    said = list(dict.fromkeys(rests.seconds))
    assert said == [REST, 2 * REST, 4 * REST, 8 * REST, 16 * REST, LONGEST_REST]


async def test_twice_as_many_follow_those_that_could_start(short: Shortage, rests: Rests) -> None:
    rests.end()
    allowed: list[int] = []
    for _ in range(4):
        allowed.append(short.most(100))
        for _ in range(allowed[-1]):
            short.started()
    assert allowed == [1, 2, 4, 8]
    short.refused(FULL)
    assert short.most(100) == 0


async def test_it_is_over_once_there_is_room_for_all(short: Shortage, rests: Rests) -> None:
    rests.end()
    assert short.most(1) == 1
    assert short.trouble is FULL, "the one that is tried may be refused"
    short.started()
    assert short.most(3) == 2
    short.started()
    short.started()
    assert short.most(3) == 3
    assert short.trouble is None
    assert short.may_start()


async def test_it_is_over_when_nobody_wants_what_is_allowed(rests: Rests) -> None:
    told: list[int] = []
    shortage = Shortage(lambda: told.append(1))
    shortage.refused(FULL)
    rests.end()
    assert (len(told), shortage.trouble) == (1, FULL)
    rests.end()
    assert (len(told), shortage.trouble) == (2, None)


async def test_a_later_one_begins_with_a_short_rest(short: Shortage, rests: Rests) -> None:
    rests.end()
    short.refused(FULL)
    rests.end()
    rests.end()
    assert short.trouble is None
    short.refused(FULL)
    assert rests.seconds[-1] == REST
