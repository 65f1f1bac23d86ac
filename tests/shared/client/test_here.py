"""A blocking client that is connected: whoever waits reads the answer without the loop."""

from __future__ import annotations

import asyncio
import selectors
import threading
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from redrive import Client
from redrive.client import channel
from redrive.client.line import TURN, Gone, Line
from redrive.client.refusals import AnswerLost, DaemonSilent
from redrive.errors import DaemonUnreachable, TryLater, UsageProblem
from redrive.protocol.codec import encode_call
from redrive.protocol.commands import Done, Drain
from redrive.protocol.envelope import Refusal
from redrive.protocol.queries import Doctor, DoctorReply
from support.peer import Peer

WELL = DoctorReply(checks=[])


@pytest_asyncio.fixture
async def connected(peer: Peer) -> AsyncIterator[Client]:
    """It has asked both sockets something already."""
    peer.replies |= {"Doctor": WELL, "Drain": Done(text="drains")}
    with Client(peer.addresses, timeout=20) as client:
        await asyncio.to_thread(client.ask, Doctor())
        await asyncio.to_thread(client.ask, Drain())
        yield client


async def test_the_loop_does_not_run_for_a_question(
    connected: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(asyncio.BaseEventLoop, "run_until_complete")
    assert await asyncio.to_thread(connected.ask, Doctor()) == WELL
    assert await asyncio.to_thread(connected.ask, Drain()) == Done(text="drains")


async def test_a_refusal_is_raised_as_the_error_it_names(peer: Peer, connected: Client) -> None:
    peer.replies["Drain"] = Refusal(code="try_later", message="busy", retry_after=2.0)
    with pytest.raises(TryLater, match="busy"):
        await asyncio.to_thread(connected.ask, Drain())


async def test_silence_lasts_no_longer_than_the_deadline(peer: Peer, connected: Client) -> None:
    peer.replies |= {"Doctor": None, "Drain": None}
    with pytest.raises(DaemonSilent, match="gave no answer in time"):
        await asyncio.to_thread(connected.ask, Doctor(), timeout=0.05)
    await asyncio.to_thread(connected.hello, as_operator=True)
    with pytest.raises(AnswerLost, match="gave no answer in time") as caught:
        await asyncio.to_thread(connected.ask, Drain(), id="abc", timeout=0.05)
    assert caught.value.request == "abc"


async def test_a_change_is_not_asked_twice_where_the_daemon_goes_away(
    peer: Peer, connected: Client
) -> None:
    peer.replies["Drain"] = lambda _: peer.close()
    with pytest.raises(AnswerLost, match="went away"):
        await asyncio.to_thread(connected.ask, Drain())
    assert len(peer.asked_for("Drain")) == 2


async def test_a_question_is_asked_once_more_where_the_daemon_comes_back(
    peer: Peer, connected: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_back = threading.Event()

    def restart(_: Doctor) -> None:
        peer.replies["Doctor"] = WELL
        peer.close()
        peer.open()
        is_back.set()

    peer.replies["Doctor"] = restart
    monkeypatch.setattr(channel, "knock", lambda *_: is_back.wait(20))
    assert await asyncio.to_thread(connected.ask, Doctor()) == WELL


async def test_a_question_is_asked_no_third_time(
    peer: Peer, connected: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_back = threading.Semaphore(0)

    def restart(_: Doctor) -> None:
        peer.close()
        peer.open()
        is_back.release()

    before = len(peer.asked_for("Doctor"))
    peer.replies["Doctor"] = restart
    monkeypatch.setattr(channel, "knock", lambda *_: is_back.acquire(timeout=20))
    with pytest.raises(DaemonUnreachable, match="went away"):
        await asyncio.to_thread(connected.ask, Doctor())
    assert len(peer.asked_for("Doctor")) - before == 2


async def test_answers_that_nobody_waits_for_any_more_hold_up_no_other(peer: Peer) -> None:
    peer.replies["Doctor"] = WELL
    selector = selectors.PollSelector()
    loop = asyncio.SelectorEventLoop(selector)

    async def opened() -> Line:
        return Line(peer.addresses.query, None, lambda: None)

    def ask_many() -> bool:
        line = loop.run_until_complete(opened())
        try:
            for id in map(str, range(TURN + TURN // 2)):
                line.post(id, encode_call(id, Doctor()))
                line.forget(id) if id != "0" else loop.run_until_complete(asyncio.sleep(0.1))
            time.sleep(0.3)  # by now they lie in the socket; if not, this shows nothing
            last = line.post("last", encode_call("last", Doctor()))
            return line.read_until(last, time.monotonic() + 20, selector)
        finally:
            line.end(Gone())
            loop.close()

    async with asyncio.timeout(10):
        assert await asyncio.to_thread(ask_many)


async def test_a_second_thread_is_answered_while_the_first_one_waits(
    peer: Peer, connected: Client
) -> None:
    waits = asyncio.Event()
    peer.replies["Doctor"] = lambda _: waits.set()
    first = asyncio.create_task(asyncio.to_thread(connected.ask, Doctor()))
    await waits.wait()
    assert await asyncio.to_thread(connected.ask, Drain()) == Done(text="drains")
    assert not first.done()
    await asyncio.to_thread(connected.close)
    with pytest.raises(UsageProblem, match="was closed"):
        await first


async def test_closing_ends_the_wait_of_another_thread(peer: Peer, connected: Client) -> None:
    waits = asyncio.Event()
    peer.replies["Drain"] = lambda _: waits.set()
    waiting = asyncio.create_task(asyncio.to_thread(connected.ask, Drain()))
    await waits.wait()
    await asyncio.to_thread(connected.close)
    with pytest.raises(UsageProblem, match="was closed"):
        await waiting
