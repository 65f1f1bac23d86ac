"""The three sockets together: opened in order, watched, closed in order."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import zmq

from redrive.config.sections import Bus as Settings
from redrive.errors import RedriveError
from redrive.instants import Instant
from redrive.keys import Role
from redrive.models import Event
from redrive.protocol.announcements import Head, Vitals
from redrive.protocol.envelope import MAX_MESSAGE, MAX_QUERY
from redrived.bus import announcer, requests
from redrived.bus.announcer import Announcer
from redrived.bus.door import Door
from redrived.bus.gate import Gate
from redrived.bus.places import make_private, open_folder
from redrived.bus.requests import Receive, Requests
from redrived.seldom import Seldom

log = logging.getLogger(__name__)

LOOK_EVERY = 10.0  # seconds between looks at whether the socket files are still ours


class Bus:
    """What the daemon says and hears. The instance lock is held as long as it is open."""

    def __init__(self, settings: Settings, runtime_dir: Path, epoch: str) -> None:
        self.epoch = epoch
        self.dropped: Counter[str] = Counter()  # what was not listened to, by why
        self.trouble: str | None = None  # why clients find no socket, and what to do
        self._seldom = Seldom(log)
        self._folder = runtime_dir.absolute()
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._gate = (
            Gate(self._context, Path(settings.curve), self.dropped) if settings.curve else None
        )
        # Who may change things may look, too.
        viewers = settings.viewers or settings.operators
        self._is_for_others = bool(viewers)
        self._events = Door(
            self._context,
            zmq.XPUB,
            "events",
            settings.events or self._in_folder("events"),
            role="viewer",
            group=viewers,
            largest=announcer.LARGEST,
            options=announcer.OPTIONS,
        )
        self._query = Door(
            self._context,
            zmq.ROUTER,
            "query",
            settings.query or self._in_folder("query"),
            role="viewer",
            group=viewers,
            largest=MAX_QUERY,
            options=requests.options("viewer"),
        )
        self._control = Door(
            self._context,
            zmq.ROUTER,
            "control",
            settings.control or self._in_folder("control"),
            role="operator",
            group=settings.operators,
            largest=MAX_MESSAGE,
            options=requests.options("operator"),
        )
        self._doors = (self._events, self._query, self._control)
        self._announcer = Announcer(self._events, epoch, self.dropped)
        self._requests: dict[Role, Requests] = {
            door.role: Requests(door, self.dropped) for door in (self._query, self._control)
        }
        self._watching: asyncio.Task[None] | None = None

    @property
    def addresses(self) -> dict[str, str]:
        """Where each socket can be reached, by its name."""
        return {door.name: door.address for door in self._doors}

    @property
    def connections(self) -> dict[str, int]:
        """How many are connected to each socket, by its name."""
        return {door.name: len(door.connections) for door in self._doors}

    async def start(self) -> None:
        """Open the sockets; requests wait in them until somebody listens."""
        make_private(self._folder)
        if self._gate is not None:
            self._gate.start()
        for door in self._doors:
            door.open(self._gate)
        open_folder(self._folder, to_others=self._is_for_others)
        self._announcer.start()
        self._watching = asyncio.create_task(self._watch(), name="bus")

    async def stop(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
        self.deafen()
        self._announcer.stop()
        for door in self._doors:
            door.close()
        if self._gate is not None:
            self._gate.stop()
        # Waits for answers that are on their way, up to their linger.
        await asyncio.to_thread(self._context.term)

    def listen(self, receive: Receive) -> None:
        """Hand over every request from now on."""
        for each in self._requests.values():
            each.listen(receive)

    def deafen(self) -> None:
        """Hand over no more requests; answers still go out."""
        for each in self._requests.values():
            each.stop()

    def answer(self, role: Role, route: bytes, data: bytes) -> bool:
        """False: too many answers to this peer are on their way already, try again."""
        return self._requests[role].answer(route, data)

    def publish(self, events: Iterable[Event]) -> None:
        """Tell of events, in commit order and dense; not even looked at when nobody listens."""
        self._announcer.publish(events)

    def head(self, seq: int, at: Instant) -> None:
        """Tell how far the log is, each second."""
        self._announcer.head(Head(epoch=self.epoch, seq=seq, at=at))

    def vitals(self, vitals: Vitals) -> None:
        self._announcer.vitals(vitals)

    def look_after_files(self) -> None:
        try:
            self._make_lost_files()
        except (OSError, zmq.ZMQError, RedriveError) as error:  # a full disk, say: again later
            self.trouble = (
                f"the socket files are gone and cannot be made anew ({error}): restart the service"
            )
            self._seldom.warn("%s", self.trouble)
        else:
            self.trouble = None

    def _make_lost_files(self) -> None:
        if lost := [door for door in self._doors if door.is_lost()]:
            make_private(self._folder)  # it may have gone with them, or somebody made another
            for door in lost:
                door.reopen()
        if any(door.is_ipc for door in self._doors):
            open_folder(self._folder, to_others=self._is_for_others)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY)
            self.look_after_files()

    def _in_folder(self, name: str) -> str:
        return f"ipc://{self._folder / name}"
