"""Requests of one role, off the wire and answers back onto it.

Sizes and frames are counted before anything is decoded. What does not look like a request
costs its sender the message, and nobody else anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import zmq

from redrive.keys import Role
from redrive.pump import Pump, is_readable
from redrived.bus.door import Door
from redrived.bus.floods import Floods
from redrived.bus.peers import Asker, address_of, asker_of, sender_of

FLOOD = 10_000  # useless messages of one process in a second
CUT_EVERY = 1_000  # messages too many; it may have come again by other connections
TURN = 32  # messages read before everything else in the daemon has a turn
# Answers that may be on their way to one peer. Pages are large, what commands say is short and
# comes in bursts, as many at once as share a commit.
_ANSWERS: dict[Role, int] = {"viewer": 32, "operator": 2_000}

Receive = Callable[[Asker, bytes, bytes], bool]  # whether it is worked on


def options(role: Role) -> dict[zmq.SocketOption, int]:
    return {
        zmq.LINGER: 1_000,
        zmq.SNDHWM: _ANSWERS[role],
        zmq.ROUTER_MANDATORY: 1,
    }


class Requests:
    """A ROUTER socket: one frame each way, besides the route that libzmq puts before it."""

    def __init__(self, door: Door, dropped: Counter[str]) -> None:
        self._door = door
        self._socket = door.socket
        self._dropped = dropped
        self._receive: Receive | None = None
        self._floods = Floods(FLOOD)
        self._pump = Pump(door.socket, self._read_some)

    def listen(self, receive: Receive) -> None:
        self._receive = receive
        self._pump.start()

    def stop(self) -> None:
        """Read no more; answers can still be sent."""
        self._pump.stop()

    def answer(self, route: bytes, data: bytes) -> bool:
        try:
            self._socket.send_multipart((route, data), zmq.NOBLOCK)
        except zmq.Again:
            return False
        except zmq.ZMQError:
            self._dropped["answer"] += 1  # the peer is gone
        finally:
            self._pump.nudge()
        return True

    def _read_some(self) -> None:
        for _ in range(TURN):
            if not is_readable(self._socket):
                return
            route = self._socket.recv(zmq.NOBLOCK, copy=False)
            last, frames = self._read_rest(route)
            if frames != 1 or len(last) > self._door.largest:
                self._dropped["frames"] += 1
                self._note_useless(last)
            elif not self._hand_over(route, last):
                self._note_useless(last)

    def _note_useless(self, frame: zmq.Frame) -> None:
        if self._floods.excess(address_of(frame)) % CUT_EVERY == 1:
            self._cut_off(frame)

    def _cut_off(self, frame: zmq.Frame) -> None:
        self._dropped["flood"] += 1
        if sender := sender_of(frame, is_ipc=self._door.is_ipc):
            self._door.connections.cut_off(sender)

    def _hand_over(self, route: zmq.Frame, data: zmq.Frame) -> bool:
        """Whether it is worked on."""
        asker = asker_of(data, self._door.role, is_ipc=self._door.is_ipc)
        if asker is None:
            self._dropped["nameless"] += 1
            return False
        return self._receive is None or self._receive(asker, route.bytes, data.bytes)

    def _read_rest(self, route: zmq.Frame) -> tuple[zmq.Frame, int]:
        """The last of the frames after the route, and how many there were."""
        frames = 0
        last = route
        while last.more:
            last = self._socket.recv(zmq.NOBLOCK, copy=False)
            frames += 1
        return last, frames
