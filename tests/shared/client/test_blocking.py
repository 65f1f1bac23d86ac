from __future__ import annotations

import asyncio
import threading

import pytest

from redrive import Client
from redrive.client import Resync
from redrive.errors import TryLater, UsageProblem
from redrive.protocol.envelope import Refusal
from redrive.protocol.queries import Doctor, DoctorReply
from support.peer import Peer, event


async def test_a_script_asks_without_knowing_of_asyncio(peer: Peer) -> None:
    def script() -> list[DoctorReply]:
        with Client(peer.addresses) as client:
            return [client.ask(Doctor()), client.ask(Doctor())]

    peer.replies["Doctor"] = DoctorReply(checks=[])
    assert await asyncio.to_thread(script) == [DoctorReply(checks=[])] * 2


async def test_several_threads_share_a_client(peer: Peer) -> None:
    peer.replies["Doctor"] = DoctorReply(checks=[])
    answers: list[DoctorReply] = []

    def script() -> None:
        with Client(peer.addresses) as client:
            threads = [
                threading.Thread(target=lambda: answers.append(client.ask(Doctor())))
                for _ in range(8)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    await asyncio.to_thread(script)
    assert len(answers) == 8


async def test_a_refusal_is_raised_in_the_thread_that_asked(peer: Peer) -> None:
    def script() -> None:
        with Client(peer.addresses) as client:
            client.ask(Doctor())

    peer.replies["Doctor"] = Refusal(code="try_later", message="busy", retry_after=2.0)
    with pytest.raises(TryLater, match="busy"):
        await asyncio.to_thread(script)


async def test_following_blocks_until_there_is_something_to_tell(peer: Peer) -> None:
    peer.log = [event(1), event(2)]

    def script() -> list[object]:
        with Client(peer.addresses) as client:
            told = client.follow(after=1)
            return [next(told), next(told)]

    assert await asyncio.to_thread(script) == [Resync(epoch="one", seq=1), event(2)]


async def test_closing_twice_is_closing_once(peer: Peer) -> None:
    client = Client(peer.addresses)
    client.close()
    client.close()
    with pytest.raises(UsageProblem, match="was closed"):
        client.status()
