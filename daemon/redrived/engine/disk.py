"""Says in time that the disk is filling up, and that what is printed cannot be kept."""

from __future__ import annotations

import asyncio
import logging
import shutil
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict

from redrive.errors import RedriveError
from redrive.room import LOW
from redrived.engine.timers import Timers
from redrived.processes.output import Outputs
from redrived.store.say import Said, say
from redrived.store.store import Store

EVERY = 10.0  # seconds
ENOUGH = 2 * LOW  # only beyond it the next `disk_low` is news

log = logging.getLogger(__name__)


class Room(Struct, frozen=True):
    path: str
    free: int  # bytes
    total: int


class Disk:
    def __init__(self, store: Store, timers: Timers, folder: Path, outputs: Outputs) -> None:
        self.room: Room | None = None  # as last seen
        self.is_low = False
        self._store = store
        self._timers = timers
        self._folder = folder
        self._outputs = outputs

    async def start(self) -> None:
        await self.look()
        self._timers.every("disk", EVERY, self.look)

    async def stop(self) -> None:
        self._timers.cancel("disk")

    async def look(self) -> None:
        self._outputs.look()
        await self._look_at_room()

    async def _look_at_room(self) -> None:
        try:
            usage = await asyncio.to_thread(shutil.disk_usage, self._folder)
        except OSError as error:
            log.error("%s cannot be looked at: %s", self._folder, error)
            return
        self.room = Room(str(self._folder), usage.free, usage.total)
        if not self.is_low and usage.free < LOW:
            self.is_low = True
            log.warning("only %d MiB are free in %s", usage.free >> 20, self._folder)
            try:
                await self._store.submit(say, Said("disk_low", asdict(self.room)))
            except RedriveError as problem:
                log.warning("the event could not be stored: %s", problem)
        elif usage.free > ENOUGH:
            self.is_low = False
