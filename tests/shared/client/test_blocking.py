from __future__ import annotations

import asyncio
import signal
import sys
import threading
import time
from asyncio.subprocess import PIPE

import pytest

from redrive import Client
from redrive.client import Resync
from redrive.errors import TryLater, UsageProblem
from redrive.protocol.envelope import Refusal, Request
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


async def test_a_daemon_that_was_restarted_meanwhile_is_asked_as_any_other(peer: Peer) -> None:
    peer.replies["Doctor"] = DoctorReply(checks=[])
    with Client(peer.addresses) as client:
        await asyncio.to_thread(client.ask, Doctor())
        peer.close()
        peer.open()
        assert await asyncio.to_thread(client.ask, Doctor()) == DoctorReply(checks=[])


async def test_a_thread_that_asks_while_another_waits_is_answered_first(peer: Peer) -> None:
    peer.replies["Doctor"] = DoctorReply(checks=[])
    with Client(peer.addresses) as client:
        told = client.follow(after=0)
        first = asyncio.create_task(asyncio.to_thread(next, told))
        assert await first == Resync(epoch="one", seq=0)
        second = asyncio.create_task(asyncio.to_thread(next, told))
        assert await asyncio.to_thread(client.ask, Doctor()) == DoctorReply(checks=[])
        assert not second.done()
        peer.log = [event(1)]
        await peer.tell_head()
        assert await second == event(1)


async def test_a_client_works_where_a_loop_runs_already(peer: Peer) -> None:
    """As in a notebook; the answer must not need the loop that waits for it."""

    def script() -> DoctorReply:
        async def blocks() -> DoctorReply:
            with Client(peer.addresses) as client:
                answer: DoctorReply = client.ask(Doctor())
                return answer

        return asyncio.run(blocks())

    peer.replies["Doctor"] = DoctorReply(checks=[])
    assert await asyncio.to_thread(script) == DoctorReply(checks=[])


INTERRUPTED = """
import sys
from redrive import Client
from redrive.client import Addresses
from redrive.protocol.queries import Doctor

query, control, events, *is_connected = sys.argv[1:]
with Client(Addresses(query=query, control=control, events=events)) as client:
    if is_connected:
        client.hello()
    try:
        client.ask(Doctor())
    except KeyboardInterrupt:
        print(client.ask(Doctor()))
"""


@pytest.mark.parametrize("is_connected", [[], ["connected"]])
async def test_an_interrupt_ends_the_question_and_not_the_client(
    peer: Peer, is_connected: list[str]
) -> None:
    at = peer.addresses
    to = [at.query, at.control, at.events, *is_connected]

    def interrupt(_: Request) -> None:
        peer.replies["Doctor"] = DoctorReply(checks=[])
        script.send_signal(signal.SIGINT)

    peer.replies["Doctor"] = interrupt
    script = await asyncio.create_subprocess_exec(
        sys.executable, "-c", INTERRUPTED, *to, stdout=PIPE, stderr=PIPE
    )
    async with asyncio.timeout(20):
        said, complaint = await script.communicate()
    assert (said.decode(), complaint) == ("DoctorReply(checks=[])\n", b"")


FORKED = """
import gc, os, sys, threading
from redrive import Client
from redrive.client import Addresses
from redrive.protocol.queries import Doctor


said = []


def ask_from_threads():
    threads = [threading.Thread(target=lambda: said.append(client.ask(Doctor()))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


query, control, events = sys.argv[1:]
client = Client(Addresses(query=query, control=control, events=events))
client.ask(Doctor())
child = os.fork()
if child == 0:
    client.close()
    client = None
    gc.collect()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
ask_from_threads()
client.close()
print(*said)
"""


async def ran(code: str, peer: Peer, *options: str) -> tuple[str, bytes]:
    """A script that is given the peer's addresses: what it said, and complained of."""
    to = peer.addresses
    words = (*options, "-c", code, to.query, to.control, to.events)
    script = await asyncio.create_subprocess_exec(sys.executable, *words, stdout=PIPE, stderr=PIPE)
    try:
        async with asyncio.timeout(20):
            said, complaint = await script.communicate()
    finally:
        if script.returncode is None:
            script.kill()
    return said.decode(), complaint


async def test_a_forked_child_that_lets_go_of_a_client_leaves_the_parents_alone(peer: Peer) -> None:
    peer.replies["Doctor"] = DoctorReply(checks=[])
    # Python 3.12 and later warn of forks where there are threads, libzmq's here: that is the test.
    said, complaint = await ran(FORKED, peer, "-W", "ignore::DeprecationWarning")
    assert (said, complaint) == ("DoctorReply(checks=[]) DoctorReply(checks=[])\n", b"")


IN_A_HANDLER = """
import signal, sys
from redrive import Client
from redrive.client import Addresses
from redrive.errors import UsageProblem
from redrive.protocol.queries import Doctor

query, control, events = sys.argv[1:]


def handle(*_):
    for asks in client.close, client.status:
        try:
            asks()
        except UsageProblem as refused:
            print(refused.message)


signal.signal(signal.SIGUSR1, handle)
with Client(Addresses(query=query, control=control, events=events)) as client:
    print(client.ask(Doctor()))
"""


async def test_a_signal_handler_is_refused_what_the_thread_under_it_is_asking(peer: Peer) -> None:
    to = peer.addresses

    def interrupt(_: Request) -> DoctorReply:
        script.send_signal(signal.SIGUSR1)
        time.sleep(0.3)  # so that it comes before the answer
        return DoctorReply(checks=[])

    peer.replies["Doctor"] = interrupt
    script = await asyncio.create_subprocess_exec(
        sys.executable, "-c", IN_A_HANDLER, to.query, to.control, to.events, stdout=PIPE
    )
    try:
        async with asyncio.timeout(20):
            said, _ = await script.communicate()
    finally:
        if script.returncode is None:
            script.kill()
    refused = "this client waits for an answer already, in this very thread\n"
    assert said.decode() == 2 * refused + "DoctorReply(checks=[])\n"


COLLECTED = """
import asyncio, gc, sys
from redrive import Client
from redrive.client import Addresses
from redrive.protocol.queries import Doctor


class Reader:
    def __init__(self, client):
        self.me = self
        self.told = client.follow()
        next(self.told)


async def blocks():
    query, control, events = sys.argv[1:]
    with Client(Addresses(query=query, control=control, events=events)) as client:
        gc.disable()
        Reader(client)
        client._loop.call_soon_threadsafe(gc.collect)
        for _ in range(3):
            print(client.ask(Doctor()))


asyncio.run(blocks())  # so that the client's loop has a thread
"""


async def test_a_reader_that_is_collected_as_garbage_in_the_clients_thread_stops_nothing(
    peer: Peer,
) -> None:
    peer.replies["Doctor"] = DoctorReply(checks=[])
    said, complaint = await ran(COLLECTED, peer)
    assert (said, complaint) == ("DoctorReply(checks=[])\n" * 3, b"")


async def test_closing_ends_the_waits_of_other_threads(peer: Peer) -> None:
    def told() -> str:
        with pytest.raises(UsageProblem) as refused:
            client.ask(Doctor())
        return refused.value.message

    asked: list[Request] = []
    peer.replies["Doctor"] = asked.append  # never
    client = Client(peer.addresses)
    waits = [asyncio.create_task(asyncio.to_thread(told)) for _ in range(3)]
    async with asyncio.timeout(20):
        while len(asked) < len(waits):
            await asyncio.sleep(0.01)
        await asyncio.gather(*(asyncio.to_thread(client.close) for _ in range(2)))
        assert await asyncio.gather(*waits) == ["this client was closed"] * 3
