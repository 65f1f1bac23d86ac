"""A zmq socket on the event loop, without a future per message."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import zmq

# Plain numbers: an enum takes longer to be combined than libzmq to be asked.
READABLE = int(zmq.POLLIN)
WRITABLE = int(zmq.POLLOUT)


def is_readable(socket: zmq.Socket[bytes]) -> bool:
    return bool(int(socket.getsockopt(zmq.EVENTS)) & READABLE)


class Pump:
    """Calls `read_some` as long as its socket has what it `awaits`.

    The descriptor of a zmq socket is edge-triggered: it says once that something happened, and
    sending on the socket may swallow even that. So whatever was done to the socket, it is asked
    again afterwards (`nudge`). `read_some` reads a limited number of messages and returns; the
    rest is read in the loop's next round, after everybody else has had a turn.
    """

    def __init__(self, socket: zmq.Socket[bytes], read_some: Callable[[], None]) -> None:
        self.awaits = READABLE  # WRITABLE too, while something is to be sent
        self._socket = socket
        self._read_some = read_some
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_planned = False

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._socket.FD, self._turn)
        self.nudge()

    def stop(self) -> None:
        if self._loop is not None:
            self._loop.remove_reader(self._socket.FD)
            self._loop = None

    def nudge(self) -> None:
        """To be called after everything that was done to the socket."""
        if self._loop is None or self._is_planned:
            return
        if int(self._socket.getsockopt(zmq.EVENTS)) & self.awaits:
            self._is_planned = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._is_planned = False
        if self._loop is None:
            return
        try:
            self._read_some()
        finally:
            self.nudge()
