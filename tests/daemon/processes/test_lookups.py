"""A resolver that hangs: what it holds up, and what goes on beside it."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from redrive.config.sections import HttpCall
from redrived.processes.http_answer import Failed
from redrived.processes.http_call import call
from redrived.processes.lookups import Lookups

WITHIN = 20.0  # seconds that a fact may take on a loaded machine
BRIEF = 0.05


class NameServer:
    """Tells the address of every name but the `silent`, of which it says nothing until the end."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.end = threading.Event()

    def getaddrinfo(self, host: str, *_: Any, **__: Any) -> list[Any]:
        self.asked[host] += 1
        if host.startswith("silent"):
            self.end.wait()
            raise socket.gaierror(socket.EAI_AGAIN, "it is over")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))] * 2


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameServer]:
    made = NameServer()
    monkeypatch.setattr("socket.getaddrinfo", made.getaddrinfo)
    yield made
    made.end.set()


async def test_a_name_that_hangs_holds_up_no_other(names: NameServer) -> None:
    lookups = Lookups()
    hanging = [asyncio.create_task(lookups.addresses(f"silent-{n}")) for n in range(20)]
    async with asyncio.timeout(WITHIN):
        assert await lookups.addresses("speaking") == ["127.0.0.1"]
        names.end.set()
        for each in hanging:
            with pytest.raises(socket.gaierror, match="it is over"):
                await each


async def test_a_name_is_asked_for_once_by_all_who_want_it(names: NameServer) -> None:
    lookups = Lookups()
    wanting = [asyncio.create_task(lookups.addresses("silent")) for _ in range(100)]
    async with asyncio.timeout(WITHIN):
        assert await lookups.addresses("speaking") == ["127.0.0.1"]
        wanting[0].cancel()  # its call was ended; the others want it still
        names.end.set()
        told = await asyncio.gather(*wanting, return_exceptions=True)
    assert names.asked["silent"] == 1
    assert Counter(type(each) for each in told) == {asyncio.CancelledError: 1, socket.gaierror: 99}


async def test_one_that_takes_too_long_makes_room_and_keeps_one_thread(names: NameServer) -> None:
    lookups = Lookups(at_once=1, patience=BRIEF)
    async with asyncio.timeout(WITHIN):
        for _ in range(3):
            with pytest.raises(socket.gaierror, match="no name server told the address of silent"):
                await lookups.addresses("silent")
        assert await lookups.addresses("speaking") == ["127.0.0.1"]
    assert names.asked == {"silent": 1, "speaking": 1}


async def test_a_name_is_asked_for_anew_once_it_was_told(names: NameServer) -> None:
    lookups = Lookups()
    for _ in range(2):
        await lookups.addresses("speaking")
    assert names.asked["speaking"] == 2


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]"])
async def test_an_address_is_called_without_asking_anybody(names: NameServer, host: str) -> None:
    outcome = await call(HttpCall(url=f"http://{host}:1/"), deadline=WITHIN, now=0.0)
    assert isinstance(outcome, Failed)
    assert outcome.exception[0] == "httpx.ConnectError"  # nobody listens there, that is all
    assert not names.asked
