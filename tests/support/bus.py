"""The daemon's end of the bus with a tiny table behind it, and clients that may misbehave."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

import zmq
import zmq.asyncio

from redrive import __version__
from redrive.client import Addresses
from redrive.clock import SECOND, Clock
from redrive.config.sections import Bus as Settings
from redrive.models import Event
from redrive.protocol import VERSION, codec
from redrive.protocol.commands import Done, Drain, Trigger
from redrive.protocol.envelope import Answer, Request
from redrive.protocol.queries import Doctor, DoctorReply, EventPage, ListEvents, Welcome
from redrive.protocol.rows import Check
from redrived.api.server import Asker, Server, Table
from redrived.bus import Bus


class Served:
    """A bus, a server, and what its handlers were asked."""

    def __init__(
        self,
        folder: Path,
        *,
        settings: Settings | None = None,
        table: Table | None = None,
        clock: Clock | None = None,
        epoch: str = "one",
    ) -> None:
        self.epoch = epoch
        self.bus = Bus(settings or Settings(), folder, epoch)
        self.asked: list[tuple[Asker, Request]] = []
        self.seq = 0  # of the newest event; they are made as they are asked for
        self.keys: str | None = settings.curve if settings else None
        whole: Table = {
            Trigger: self._done,
            Drain: self._done,
            Doctor: self._doctor,
            ListEvents: self._events,
            **(table or {}),
        }
        self.server = Server(self.bus, whole, self._welcome, clock)

    @property
    def addresses(self) -> Addresses:
        return Addresses(**self.bus.addresses, keys=self.keys)

    async def start(self) -> None:
        await self.bus.start()
        await self.server.start()

    async def stop(self) -> None:
        await self.server.stop()
        await self.bus.stop()

    def tell(self, count: int = 1) -> None:
        """Add events to the log and publish them."""
        first, self.seq = self.seq + 1, self.seq + count
        self.bus.publish(event(seq) for seq in range(first, self.seq + 1))

    def head(self) -> None:
        self.bus.head(self.seq, 0)

    async def _done(self, asker: Asker, request: Request) -> Done:
        self.asked.append((asker, request))
        return Done(text=f"number {len(self.asked)}")

    async def _doctor(self, asker: Asker, request: Request) -> DoctorReply:
        self.asked.append((asker, request))
        return DoctorReply(checks=[Check(name="bus", ok=True, text=asker.who)])

    async def _events(self, asker: Asker, request: ListEvents) -> EventPage:
        last = min(self.seq, request.after + request.limit)
        if request.last is not None:
            return EventPage(events=[], head=self.seq)
        return EventPage(
            events=[event(seq) for seq in range(request.after + 1, last + 1)], head=self.seq
        )

    def _welcome(self, asker: Asker) -> Welcome:
        return Welcome(
            version=VERSION,
            program=__version__,
            node="main",
            epoch=self.epoch,
            store="sqlite",
            role=asker.role,
            who=asker.who,
        )


def event(seq: int) -> Event:
    return Event(seq=seq, at=seq * SECOND, type="step_started", job=seq, state="leased")


@asynccontextmanager
async def serving(folder: Path, **choices: Any) -> AsyncIterator[Served]:
    served = Served(folder, **choices)
    await served.start()
    try:
        yield served
    finally:
        await served.stop()


class Raw:
    """A socket that sends whatever bytes the test wants."""

    def __init__(self, kind: int, address: str, **options: Any) -> None:
        self.socket = zmq.asyncio.Context.instance().socket(kind)
        self.socket.setsockopt(zmq.LINGER, 0)
        for name, value in options.items():
            setattr(self.socket, name, value)
        self.socket.connect(address)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close(0)

    async def send(self, *frames: bytes) -> None:
        await self.socket.send_multipart(frames)

    async def ask(self, request: Request, id: str = "a", timeout: float | None = None) -> Answer:
        return await self.exchange(codec.encode_call(id, request, timeout))

    async def exchange(self, data: bytes) -> Answer:
        await self.send(data)
        return await self.answer()

    async def answer(self, within: float = 10.0) -> Answer:
        return codec.decode_answer((await self.receive(within))[-1])

    async def receive(self, within: float = 10.0) -> list[bytes]:
        async with asyncio.timeout(within):
            return await self.socket.recv_multipart()


async def elsewhere(program: str, *arguments: str, **options: Any) -> str:
    """What a Python program prints in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        program,
        *arguments,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        **options,
    )
    async with asyncio.timeout(60):
        printed, _ = await process.communicate()
    return printed.decode()
