"""The shape of everything that runs as long as the daemon does."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from typing import Protocol

from redrive.errors import RedriveError
from redrived.seldom import Seldom

log = logging.getLogger(__name__)


class Service(Protocol):
    """Something the supervisor starts and, in reverse order, stops."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


class Signal:
    """Wakes one loop; said twice before anybody listens, it is heard once."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def say(self) -> None:
        self._event.set()

    async def hear(self) -> None:
        await self._event.wait()
        self._event.clear()


class Loop(ABC):
    """A service around one step that runs whenever it is woken."""

    def __init__(self) -> None:
        self.busy_since: float | None = None  # the loop's time; None: it waits to be woken
        self._signal = Signal()
        self._seldom = Seldom(log)
        self._task: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return type(self).__name__.lower()

    def wake(self) -> None:
        self._signal.say()

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=self.name)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    @abstractmethod
    async def run_once(self) -> bool:
        """The step; True asks for the next one at once."""
        ...

    async def _run(self) -> None:
        while True:
            self.busy_since = None
            await self._signal.hear()
            self.busy_since = asyncio.get_running_loop().time()
            try:
                if await self.run_once():
                    self.wake()
            except asyncio.CancelledError:
                raise
            except RedriveError as problem:
                self._seldom.warn(
                    "%s goes on in a second: %s", self.name, problem, about=f"{problem}"
                )
                await asyncio.sleep(1)
                self.wake()
            except Exception as error:  # noqa: BLE001 - one bad round must not end the service
                self._seldom.exception(
                    "%s failed; it goes on in a second", self.name, about=f"{error!r}"
                )
                await asyncio.sleep(1)
                self.wake()
