"""The link to a real daemon: the `Source` over the bus.

Events are gathered for a tenth of a second before the mirror takes them, so that thousands a
second cost the screen ten looks. The status is asked for each second while anybody answers;
the rest comes by itself.
"""

from __future__ import annotations

import asyncio
from typing import Any

from redrive.client import Addresses, AsyncClient, Away, Resync
from redrive.config import Config
from redrive.errors import ProtocolMismatch, RedriveError
from redrive.models import Event
from redrive.protocol.announcements import Vitals
from redrive.protocol.queries import Request, Welcome
from redrive_tui.mirror import Mirror

GATHER = 0.1  # seconds
STATUS_EVERY = 1.0


class Link:
    """One daemon, looked for until the console ends."""

    def __init__(self, config: Addresses | Config | str) -> None:
        self._client = AsyncClient(config, name="console")
        self._gathered: list[Event] = []
        self._retries = 0

    @property
    def address(self) -> str:
        return self._client.addresses.query

    async def close(self) -> None:
        await self._client.close()

    async def ask(self, query: Request) -> Any:
        return await self._client.ask(query)

    async def command(self, command: Request, *, key: str) -> Any:
        return await self._client.ask(command, id=key)

    async def follow(self, mirror: Mirror) -> None:
        """Keep the mirror true until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._hand_over(mirror))
            group.create_task(self._ask_status(mirror))
            group.create_task(self._listen(mirror))

    async def _listen(self, mirror: Mirror) -> None:
        while True:
            try:
                async for told in self._client.follow(vitals=True):
                    await self._take(mirror, told)
            except ProtocolMismatch as error:
                mirror.relink("version", detail=error.message)
            except RedriveError as error:
                self._lose(mirror, error)
            await asyncio.sleep(STATUS_EVERY)

    async def _take(self, mirror: Mirror, told: Event | Vitals | Resync | Away) -> None:
        match told:
            case Event():
                self._gathered.append(told)
            case Vitals():
                mirror.feel(told)
            case Away(error=error):
                self._lose(mirror, error)
            case Resync():
                await self._resync(mirror)

    async def _resync(self, mirror: Mirror) -> None:
        """The link is there, or there again: who is it, and how do things stand?"""
        self._gathered.clear()
        welcome = await self._greet()
        if mirror.welcome is not None and welcome.epoch != mirror.welcome.epoch:
            mirror.relink("restarted")
        mirror.meet(welcome)
        mirror.load(await self._client.status())
        self._retries = 0

    async def _greet(self) -> Welcome:
        """As an operator where that socket lets us in, else as one who looks."""
        try:
            return await self._client.hello(as_operator=True)
        except RedriveError:
            return await self._client.hello()

    async def _hand_over(self, mirror: Mirror) -> None:
        while True:
            await asyncio.sleep(GATHER)
            if self._gathered:
                gathered, self._gathered = self._gathered, []
                mirror.apply(gathered)

    async def _ask_status(self, mirror: Mirror) -> None:
        while True:
            await asyncio.sleep(STATUS_EVERY)
            if mirror.link.word != "live":
                self._retries += 1
                continue
            try:
                mirror.load(await self._client.status())
            except RedriveError as error:
                self._lose(mirror, error)

    def _lose(self, mirror: Mirror, error: RedriveError) -> None:
        mirror.relink("lost", retries=self._retries, detail=error.message)
