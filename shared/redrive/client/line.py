"""One connection to one of the daemon's ROUTERs: requests go out, answers are matched by id.

Nothing is queued for a daemon that is away: a request waits for the connection no longer
than its deadline, and is gone after that. A daemon that comes back never finds old wishes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from selectors import BaseSelector

import zmq
from zmq.utils.monitor import parse_monitor_message

from redrive.client.sockets import open_socket
from redrive.errors import NotAllowed, UsageProblem
from redrive.protocol.codec import decode_answer
from redrive.protocol.envelope import Answer
from redrive.pump import READABLE, WRITABLE, Pump, is_readable

TURN = 100  # messages read before everything else in the loop has a turn

_NOT_LET_IN = zmq.EVENT_HANDSHAKE_FAILED_AUTH
_NOBODY = zmq.EVENT_CONNECT_RETRIED
_GONE = (
    zmq.EVENT_DISCONNECTED
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
)


class Gone(Exception):
    """There is no connection (any more)."""


class Silent(Gone):
    """Somebody listens there, and does not even greet."""


class Line:
    """A connection, until it ends.

    libzmq would make it anew, but for a moment it takes what is sent and drops it.
    """

    def __init__(self, address: str, key_folder: str | None, on_end: Callable[[], None]) -> None:
        self.over = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._address = address
        self._on_end = on_end
        self._unsent: dict[str, bytes] = {}  # they wait for the connection
        self._waiting: dict[str, asyncio.Future[Answer]] = {}
        self._has_sent = False
        self._socket = open_socket(zmq.DEALER, address, key_folder)
        self._monitor = self._socket.get_monitor_socket(_GONE | _NOBODY | _NOT_LET_IN)
        self._socket.connect(address)
        self._pump = Pump(self._socket, self._turn)
        self._monitor_pump = Pump(self._monitor, self._watch)
        self._descriptors = {self._socket.FD, self._monitor.FD}
        self._pump.start()
        self._monitor_pump.start()

    def post(self, id: str, call: bytes) -> asyncio.Future[Answer]:
        """Send a request; whoever waits for the answer lets the line be read meanwhile."""
        answered: asyncio.Future[Answer] = self._loop.create_future()
        self._waiting[id] = answered
        self._unsent[id] = call
        self._send()
        return answered

    async def exchange(self, id: str, call: bytes) -> Answer:
        answered = self.post(id, call)
        self._pump.nudge()
        return await answered

    def read_until(
        self, answered: asyncio.Future[Answer], deadline: float, selector: BaseSelector
    ) -> bool:
        """Read in the thread that waits, as long as only this line has anything to read.

        The selector is that of the loop, which stands still meanwhile; False: it is to run.
        """
        while True:
            self._turn()
            self.look()
            if answered.done():
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            if is_readable(self._socket):
                continue  # its descriptor has told of it, and will not again
            if any(key.fd not in self._descriptors for key, _ in selector.select(left)):
                return False

    def look(self) -> None:
        """Notice what happened to it while the loop did not run."""
        if is_readable(self._monitor):
            self._watch()

    def forget(self, id: str) -> bool:
        """Wait for this answer no longer; whether the request never left."""
        self._waiting.pop(id, None)
        return self._unsent.pop(id, None) is not None

    def end(self, why: Exception) -> None:
        """Close it, and fail whoever still waits."""
        if self.over.is_set():
            return
        self.over.set()
        self._pump.stop()
        self._monitor_pump.stop()
        self._socket.disable_monitor()
        self._monitor.close(linger=0)
        self._socket.close(linger=0)
        self._on_end()
        self._fail_all(why)

    def _turn(self) -> None:
        self._send()
        for _ in range(TURN):
            if not is_readable(self._socket):
                return
            self._hand_out(self._socket.recv_multipart(zmq.NOBLOCK)[-1])

    def _send(self) -> None:
        for id, call in list(self._unsent.items()):
            try:
                self._socket.send(call, zmq.NOBLOCK)
            except zmq.Again:
                self._pump.awaits = READABLE | WRITABLE
                return
            self._has_sent = True
            del self._unsent[id]
        self._pump.awaits = READABLE

    def _hand_out(self, data: bytes) -> None:
        try:
            answer = decode_answer(data)
        except UsageProblem as error:
            self._fail_all(error)
            return
        # One that nobody waits for any more came after its deadline.
        waiting = self._waiting.get(answer.id)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    def _watch(self) -> None:
        try:
            happened = parse_monitor_message(self._monitor.recv_multipart(zmq.NOBLOCK))
        except zmq.Again:
            return
        self._turn()  # what was answered before the end still counts
        self.end(self._ended(happened["event"]))

    def _ended(self, event: int) -> Exception:
        if event == _NOT_LET_IN:
            return NotAllowed(
                f"the daemon at {self._address} does not let this key in",
                hint="`redrive keys list` on its machine shows the keys and their roles",
            )
        if event == zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL and not self._has_sent:
            return Silent(f"the daemon at {self._address} listens and does not answer")
        if event == _NOBODY:
            return Gone(f"nobody listens at {self._address}")
        return Gone(f"the daemon at {self._address} went away")

    def _fail_all(self, error: Exception) -> None:
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(error)
