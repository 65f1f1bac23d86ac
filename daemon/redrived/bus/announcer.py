"""Tells everybody who listens what happened; costs nothing when nobody does.

The store is the truth and this a hint: a listener that does not keep up loses messages and
finds the gap by the events' seq, or by the head each second. Nothing here ever waits.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator

import zmq

from redrive.models import Event
from redrive.protocol import codec
from redrive.protocol.announcements import EVENTS, HEAD, VITALS, EventBatch, Head, Vitals
from redrive.pump import Pump
from redrived.bus.door import Door
from redrived.bus.floods import Floods
from redrived.bus.peers import sender_of

LARGEST = 64  # bytes of a subscription
OPTIONS = {
    zmq.LINGER: 0,
    zmq.SNDHWM: 100,  # batches: a listener that stands still holds 25 MiB at most
    zmq.XPUB_VERBOSE: 1,
}
GATHER = 0.005  # seconds for which events are gathered into one message
BATCH = 256 * 1024  # bytes of a message, about
CHUNK = 500  # events encoded at once
TURN = 64
FLOOD = 1_000  # subscriptions of one process in a second
# Topics that are not ours, in all. libzmq keeps each of them, at some forty times its size.
STRAY_TOPICS = 32

_TOPICS = (EVENTS, HEAD, VITALS)


class Announcer:
    """The XPUB socket: publishes, and reads who has subscribed to what."""

    def __init__(self, door: Door, epoch: str, dropped: Counter[str]) -> None:
        self._door = door
        self._epoch = epoch
        self._dropped = dropped
        self._subscribed: set[bytes] = set()
        self._strays: set[bytes] = set()
        self._heard: frozenset[bytes] = frozenset()
        self._gathered: list[Event] = []
        self._flushing: asyncio.TimerHandle | None = None
        self._head: Head | None = None
        self._floods = Floods(FLOOD)
        self._pump = Pump(door.socket, self._read_some)

    def start(self) -> None:
        self._pump.start()

    def stop(self) -> None:
        self.flush()
        self._pump.stop()

    def publish(self, events: Iterable[Event]) -> None:
        """Events in commit order, dense; they are not even looked at when nobody listens."""
        if EVENTS not in self._heard:
            return
        self._gathered.extend(events)
        if self._flushing is None:
            self._flushing = asyncio.get_running_loop().call_later(GATHER, self.flush)

    def head(self, head: Head) -> None:
        self._head = head
        self.flush()  # what the head counts must not come after it
        self._tell(HEAD, head)

    def vitals(self, vitals: Vitals) -> None:
        self._tell(VITALS, vitals)

    def flush(self) -> None:
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        gathered, self._gathered = self._gathered, []
        for message in _messages(self._epoch, gathered):
            self._send(EVENTS, message)

    def _tell(self, topic: bytes, told: Head | Vitals) -> None:
        if topic in self._heard:
            self._send(topic, codec.encode(told))

    def _send(self, topic: bytes, message: bytes) -> None:
        self._door.socket.send_multipart((topic, message), zmq.NOBLOCK)
        self._pump.nudge()

    def _read_some(self) -> None:
        is_new = False
        for _ in range(TURN):
            try:
                frame = self._door.socket.recv(zmq.NOBLOCK, copy=False)
            except zmq.Again:
                break
            is_new = self._subscription(frame) or is_new
        if is_new and self._head is not None:
            # Tells the newcomer that its subscription holds and what it has missed.
            self._tell(HEAD, self._head)

    def _subscription(self, frame: zmq.Frame) -> bool:
        """Take note of one; whether somebody listens anew."""
        verb, topic = frame.bytes[:1], frame.bytes[1:]
        is_ours = any(ours.startswith(topic) for ours in _TOPICS)
        if verb == b"\x00":
            self._subscribed.discard(topic)
            self._strays.discard(topic)
        elif self._is_flood(frame):
            self._cut_off(frame)
        elif verb == b"\x01" and is_ours:
            self._subscribed.add(topic)
        elif verb == b"\x01" and len(self._strays) < STRAY_TOPICS:
            self._strays.add(topic)
        else:  # somebody publishes to us, or fills libzmq's memory with topics
            self._cut_off(frame)
        self._heard = frozenset(
            ours for ours in _TOPICS if any(ours.startswith(topic) for topic in self._subscribed)
        )
        return verb == b"\x01" and is_ours

    def _is_flood(self, frame: zmq.Frame) -> bool:
        return self._floods.excess(sender_of(frame, is_ipc=self._door.is_ipc)) > 0

    def _cut_off(self, frame: zmq.Frame) -> None:
        self._dropped["subscription"] += 1
        if sender := sender_of(frame, is_ipc=self._door.is_ipc):
            self._door.connections.cut_off(sender)


def _messages(epoch: str, events: list[Event]) -> Iterator[bytes]:
    for start in range(0, len(events), CHUNK):
        yield from _fitting(epoch, events[start : start + CHUNK])


def _fitting(epoch: str, events: list[Event]) -> Iterator[bytes]:
    """Batches of a sane size; an event that is larger goes alone."""
    message = codec.encode_told(EventBatch(epoch=epoch, events=events))
    if len(message) <= BATCH or len(events) == 1:
        yield message
        return
    middle = len(events) // 2
    yield from _fitting(epoch, events[:middle])
    yield from _fitting(epoch, events[middle:])
