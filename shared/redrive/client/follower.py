"""The event log as it grows, without a hole: subscribe first, then ask for what is missing.

A subscription may lose messages: while it is being made, when its reader is slow, when the
daemon goes. So every event's seq is compared with the last one, what lies between is asked
for, and the head that the daemon tells each second shows a tail that was lost.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Protocol

import zmq
import zmq.asyncio
from msgspec import Struct

from redrive.client.refusals import DaemonSilent
from redrive.client.sockets import open_socket
from redrive.errors import DaemonUnreachable
from redrive.models import Event
from redrive.protocol.announcements import EVENTS, HEAD, VITALS, EventBatch, Head, Vitals
from redrive.protocol.codec import decode_as
from redrive.protocol.queries import EventPage, Welcome

SILENCE = 3.0  # seconds; the daemon says something each second
GONE = 16  # daemons before this one whose last words may still be on their way
_PAGE = 1000


class Resync(Struct, frozen=True, kw_only=True):
    """Everything known before is void: take a snapshot. Events after `seq` follow."""

    epoch: str
    seq: int


class Away(Struct, frozen=True, kw_only=True):
    """No daemon answers; said once, then we go on trying."""

    error: DaemonUnreachable


Told = Event | Vitals | Resync | Away


class Asked(Protocol):
    """What a follower asks of a client."""

    async def hello(self) -> Welcome: ...

    async def events(
        self, *, after: int = 0, limit: int = _PAGE, last: int | None = None
    ) -> EventPage: ...


class Follower:
    def __init__(
        self, client: Asked, address: str, keys: str | None, *, after: int | None, vitals: bool
    ) -> None:
        self._client = client
        self._address = address
        self._keys = keys
        self._topics = [EVENTS, HEAD] + [VITALS] * vitals
        self._seq = after  # of the last event told; None: start with the next one
        self._epoch = ""
        # Epochs of daemons that are gone; their last words are late.
        self._left: deque[str] = deque(maxlen=GONE)

    async def follow(self) -> AsyncGenerator[Told]:
        plain = open_socket(zmq.SUB, self._address, self._keys)
        socket = zmq.asyncio.Socket.from_socket(plain)  # pyright: ignore[reportUnknownMemberType]
        for topic in self._topics:
            socket.subscribe(topic)
        socket.connect(self._address)
        try:
            while True:
                try:
                    async for told in self._until_it_restarts(socket):
                        yield told
                except DaemonUnreachable as error:
                    yield Away(error=error)
                    await self._until_it_answers()
        finally:
            socket.close(linger=0)

    async def _until_it_restarts(self, socket: zmq.asyncio.Socket) -> AsyncIterator[Told]:
        welcome = await self._client.hello()
        head = (await self._client.events(last=1)).head
        if self._seq is None or self._seq > head:  # beyond the head: it is another store
            self._seq = head
        self._epoch = welcome.epoch
        yield Resync(epoch=self._epoch, seq=self._seq)
        async for event in self._up_to(head):
            yield event
        while True:
            said = await self._receive(socket)
            if said.epoch in self._left:
                continue
            if said.epoch != self._epoch:
                if (await self._client.hello()).epoch == self._epoch:
                    # One that was killed while we asked it something had said more by then.
                    self._left.append(said.epoch)
                    continue
                self._left.append(self._epoch)
                return
            match said:
                case Vitals():
                    yield said
                case Head():
                    async for event in self._up_to(said.seq):
                        yield event
                case EventBatch():
                    async for event in self._in_order(said.events):
                        yield event

    async def _in_order(self, events: list[Event]) -> AsyncIterator[Event]:
        assert self._seq is not None
        for event in events:
            if event.seq > self._seq + 1:
                async for missed in self._up_to(event.seq - 1):
                    yield missed
            if event.seq > self._seq:
                self._seq = event.seq
                yield event

    async def _up_to(self, seq: int) -> AsyncIterator[Event]:
        """What lies between the last event told and this one, from the store."""
        assert self._seq is not None
        while self._seq < seq:
            page = await self._client.events(after=self._seq, limit=_PAGE)
            for event in page.events:
                self._seq = event.seq
                yield event
            if not page.events:
                self._seq = seq  # they are older than the store keeps them

    async def _receive(self, socket: zmq.asyncio.Socket) -> EventBatch | Head | Vitals:
        kinds: dict[bytes, type[EventBatch | Head | Vitals]] = {
            EVENTS: EventBatch,
            HEAD: Head,
            VITALS: Vitals,
        }
        try:
            async with asyncio.timeout(SILENCE):
                topic, payload = await socket.recv_multipart()
        except TimeoutError:
            raise DaemonSilent(
                f"the daemon at {self._address} has said nothing for {SILENCE:g} s",
                hint="`redrive status` asks whether it is there",
            ) from None
        return decode_as(kinds[topic], payload)

    async def _until_it_answers(self) -> None:
        while True:
            await asyncio.sleep(random.uniform(0.2, 0.8))
            try:
                await self._client.hello()
            except DaemonUnreachable:
                continue
            return
