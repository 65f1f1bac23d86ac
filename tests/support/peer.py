"""A daemon's sockets in the test's own process, answering from a table of canned replies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import zmq
import zmq.asyncio
from msgspec import Struct

from redrive.client import Addresses
from redrive.clock import SECOND
from redrive.models import Event
from redrive.protocol import VERSION
from redrive.protocol.announcements import EVENTS, HEAD, EventBatch, Head
from redrive.protocol.codec import (
    decode_call,
    decode_command,
    decode_query,
    encode,
    encode_answer,
)
from redrive.protocol.envelope import Refusal, Request
from redrive.protocol.queries import EventPage, ListEvents, Welcome

Reply = Struct | Refusal | None  # None: no answer
MOST = 10_000  # events in a page
Canned = Callable[[Any], Reply] | Reply


def welcome(epoch: str = "one", version: int = VERSION) -> Welcome:
    return Welcome(
        version=version,
        program="9.9.9",
        node="main",
        epoch=epoch,
        store="sqlite",
        role="operator",
        who="uid 1000",
    )


def event(seq: int) -> Event:
    return Event(seq=seq, at=seq * SECOND, type="step_started", job=seq)


class Peer:
    """Knows how to greet and to tell its events; the test says what else it answers."""

    def __init__(self, folder: Path) -> None:
        self.addresses = Addresses(
            query=f"ipc://{folder}/query",
            control=f"ipc://{folder}/control",
            events=f"ipc://{folder}/events",
        )
        self.asked: list[Request] = []
        self.replies: dict[str, Canned] = {"Hello": welcome()}
        self.log: list[Event] = []
        self.at_once = MOST  # of its events a message holds, however many are asked for
        self._tasks: list[asyncio.Task[None]] = []
        self._sockets: list[zmq.asyncio.Socket] = []

    def asked_for(self, kind: str) -> list[Any]:
        return [request for request in self.asked if type(request).__name__ == kind]

    def open(self) -> None:
        context = zmq.asyncio.Context.instance()
        routers = [
            (self.addresses.query, decode_query),
            (self.addresses.control, decode_command),
        ]
        for address, decode in routers:
            socket = context.socket(zmq.ROUTER)
            socket.bind(address)
            self._sockets.append(socket)
            self._tasks.append(asyncio.create_task(self._serve(socket, decode)))
        self.events = context.socket(zmq.XPUB)
        self.events.bind(self.addresses.events)
        self._sockets.append(self.events)

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        for socket in self._sockets:
            socket.close(linger=0)
        self._tasks.clear()
        self._sockets.clear()

    def hang_up_control(self) -> None:
        """No more answers to changes; questions are answered still."""
        self._tasks[1].cancel()
        self._sockets[1].close(linger=0)

    async def subscribed(self, topics: int = 2) -> None:
        for _ in range(topics):
            assert (await self.events.recv())[0] == 1

    async def tell(self, *events: Event, epoch: str = "one") -> None:
        batch = EventBatch(epoch=epoch, events=list(events))
        await self.events.send_multipart([EVENTS, encode(batch)])

    async def tell_head(self, epoch: str = "one") -> None:
        head = Head(epoch=epoch, seq=self._head(), at=0)
        await self.events.send_multipart([HEAD, encode(head)])

    def _head(self) -> int:
        return self.log[-1].seq if self.log else 0

    async def _serve(self, socket: zmq.asyncio.Socket, decode: Callable[..., Request]) -> None:
        while True:
            sender, data = await socket.recv_multipart()
            call = decode_call(data)
            request = decode(call)
            self.asked.append(request)
            reply = self._reply(request)
            if reply is not None:
                await socket.send_multipart([sender, encode_answer(call.id, reply)])

    def _reply(self, request: Request) -> Reply:
        canned = self.replies.get(type(request).__name__)
        if canned is None and isinstance(request, ListEvents):
            return self._page(request)
        return canned(request) if callable(canned) else canned

    def _page(self, request: ListEvents) -> EventPage:
        after = [each for each in self.log if each.seq > request.after]
        last = min(request.last or 0, MOST)
        some = self.at_once
        events = after[-last:][-some:] if last else after[: request.limit][:some]
        oldest = self.log[0].seq if self.log else 0
        return EventPage(events=events, head=self._head(), oldest=oldest)


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Peer]:
    peer = Peer(folder)
    peer.open()
    try:
        yield peer
    finally:
        peer.close()
