"""The link to a real daemon: the `Source` over the bus.

Events are gathered for a tenth of a second before the mirror takes them, so that thousands a
second cost the screen ten looks. The status is asked for each second while anybody answers;
the rest comes by itself. While nobody does, each second is one try to reach the daemon, and
the number of tries is the number that is shown.
"""

from __future__ import annotations

import asyncio
from typing import Any

from redrive.client import Addresses, AsyncClient, Away, DaemonSilent, Resync
from redrive.config import Config
from redrive.errors import ProtocolMismatch, RedriveError
from redrive.models import Event
from redrive.protocol.announcements import Vitals
from redrive.protocol.envelope import Request
from redrive.protocol.queries import Welcome
from redrive_tui.mirror import Mirror

GATHER = 0.1  # seconds
STATUS_EVERY = 1.0
RECENT = 1_000  # events before the console began that are told, too


class Link:
    """One daemon, looked for until the console ends."""

    def __init__(self, config: Addresses | Config | str) -> None:
        self._client = AsyncClient(config, name="console")
        self._gathered: list[Event] = []

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
                after = None if len(mirror.events) else await self._a_while_ago()
                async for told in self._client.follow(after, vitals=True):
                    await self._take(mirror, told)
            except RedriveError as error:
                _lose(mirror, error)
            await asyncio.sleep(STATUS_EVERY)

    async def _a_while_ago(self) -> int:
        """Whoever opens a console does so because of what has happened."""
        return max(0, (await self._client.events(last=1)).head - RECENT)

    async def _take(self, mirror: Mirror, told: Event | Vitals | Resync | Away) -> None:
        match told:
            case Event():
                self._gathered.append(told)
            case Vitals():
                mirror.feel(told)
            case Away(error=DaemonSilent()):
                pass  # its age shows that it lags; a connection that ends is noticed by itself
            case Away(error=error):
                _lose(mirror, error)
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
            live = mirror.link.word == "live"
            if live:
                await self._pause_or_loss()
            else:
                await asyncio.sleep(STATUS_EVERY)
            try:
                if live:
                    mirror.load(await self._client.status())
                else:
                    await self._client.hello()  # what is known anew comes with the `Resync`
            except RedriveError as error:
                _lose(mirror, error, tries=0 if live else 1)

    async def _pause_or_loss(self) -> None:
        """A loss is told when it happens, and not when it is time to ask again."""
        try:
            async with asyncio.timeout(STATUS_EVERY):
                await self._client.hung_up()
        except TimeoutError:
            pass  # still there


def _lose(mirror: Mirror, error: RedriveError, *, tries: int = 0) -> None:
    if isinstance(error, ProtocolMismatch):
        mirror.relink("version", detail=str(error))
        return
    before = mirror.link.retries if mirror.link.word == "lost" else 0
    mirror.relink("lost", retries=before + tries, detail=str(error))
