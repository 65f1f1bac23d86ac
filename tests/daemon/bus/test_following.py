"""Daemon and client together: whatever gets lost on the way, the listener ends up right."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import psutil

from redrive.client import AsyncClient, Resync
from redrive.client.follower import Told
from redrive.models import Event
from support.bus import Served, serving
from support.daemon import soon

RIGHT_AGAIN = 2.0  # seconds from where it reads again: the promise, and many times what it takes
SECONDS = float(os.environ.get("REDRIVE_STALL_SECONDS", "2"))
MIB = 1024 * 1024

# Follows to a given seq, in a process of its own that can be stopped.
LISTENER = """
import asyncio, sys
from redrive.client import Addresses, AsyncClient
from redrive.models import Event

async def main(query, control, events):
    seen = 0
    addresses = Addresses(query=query, control=control, events=events)
    async with AsyncClient(addresses, timeout=60.0) as client:
        async for told in client.follow(after=0):
            if isinstance(told, Event):
                assert told.seq == seen + 1, (told.seq, seen)
                seen = told.seq
                if told.type == "step_started" and seen % 1000 == 0 or seen < 3:
                    print(seen, flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


async def next_event(following: AsyncGenerator[Told]) -> Event:
    async with asyncio.timeout(20):
        async for told in following:
            if isinstance(told, Event):
                return told
    raise AssertionError("it ended")


async def next_resync(following: AsyncGenerator[Told]) -> Resync:
    async with asyncio.timeout(20):
        async for told in following:
            if isinstance(told, Resync):
                return told
    raise AssertionError("it ended")


async def test_an_event_lost_at_the_very_end_is_noticed_by_the_head(served: Served) -> None:
    async with AsyncClient(served.addresses) as client, aclosing(client.follow()) as following:
        assert (await next_resync(following)).seq == 0
        served.tell()
        assert (await next_event(following)).seq == 1
        served.seq = 2  # logged, and never told
        served.head()
        assert (await next_event(following)).seq == 2


async def test_after_a_restart_twenty_listeners_learn_of_it_and_go_on(folder: Path) -> None:
    async with serving(folder / "run") as before:
        clients = [AsyncClient(before.addresses) for _ in range(20)]
        listeners = [client.follow() for client in clients]
        for listener in listeners:
            assert (await next_resync(listener)).epoch == "one"
    async with serving(folder / "run", epoch="two") as after:
        heads = asyncio.create_task(_tell_head_often(after))
        resyncs = await asyncio.gather(*map(next_resync, listeners))
        assert {resync.epoch for resync in resyncs} == {"two"}
        after.tell()
        events = await asyncio.gather(*map(next_event, listeners))
        assert {event.seq for event in events} == {1}
        heads.cancel()
        for listener, client in zip(listeners, clients, strict=True):
            await listener.aclose()
            await client.close()


async def test_a_listener_that_stands_still_costs_no_memory_and_catches_up(
    served: Served,
) -> None:
    addresses = served.bus.addresses
    listener = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        LISTENER,
        *(addresses[name] for name in ("query", "control", "events")),
        stdout=asyncio.subprocess.PIPE,
    )
    assert listener.stdout is not None
    served.tell(2)
    while await listener.stdout.readline() != b"2\n":
        pass
    listener.send_signal(signal.SIGSTOP)

    memory = psutil.Process().memory_info
    await _tell_for(served, SECONDS / 4)  # what the sockets themselves hold
    before = memory().rss
    await _tell_for(served, SECONDS)
    assert memory().rss - before < 8 * MIB

    listener.send_signal(signal.SIGCONT)
    served.tell(1000 - served.seq % 1000)
    served.head()
    await soon(lambda: served.bus.connections["events"] > 0, "it is back")
    heads = asyncio.create_task(_tell_head_often(served))
    async with asyncio.timeout(RIGHT_AGAIN):
        while int(await listener.stdout.readline()) != served.seq:
            pass
    heads.cancel()
    listener.kill()
    await listener.wait()


async def _tell_for(served: Served, seconds: float) -> None:
    """Five thousand events a second."""
    end = asyncio.get_running_loop().time() + seconds
    while asyncio.get_running_loop().time() < end:
        served.tell(50)
        await asyncio.sleep(0.01)


async def _tell_head_often(served: Served) -> None:
    while True:
        served.head()
        await asyncio.sleep(0.1)
