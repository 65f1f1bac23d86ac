"""One DEALER to one of the daemon's ROUTERs: requests go out, answers are matched by id.

Nothing is queued for a daemon that is away: a request waits for the connection no longer
than its deadline, and is gone after that. A daemon that comes back never finds old wishes.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

import zmq
import zmq.asyncio
from zmq.utils.monitor import parse_monitor_message

from redrive import __version__
from redrive.client.addresses import Addresses, knock
from redrive.client.refusals import AnswerLost, error_of, writing
from redrive.client.sockets import open_socket
from redrive.clock import SystemClock
from redrive.errors import DaemonUnreachable, NotAllowed, ProtocolMismatch, UsageProblem
from redrive.protocol import VERSION
from redrive.protocol.codec import decode_answer, decode_as, encode_call
from redrive.protocol.envelope import Answer
from redrive.protocol.queries import Hello, Request, Welcome

_NOT_LET_IN = zmq.EVENT_HANDSHAKE_FAILED_AUTH
_NOBODY = zmq.EVENT_CONNECT_RETRIED
_GONE = (
    zmq.EVENT_DISCONNECTED
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
)


class _Gone(Exception):
    """There is no connection (any more)."""


class Channel:
    """Belongs to one running loop; opened by the first question."""

    def __init__(self, address: str, addresses: Addresses, *, name: str, largest: int) -> None:
        self.address = address
        self._largest = largest  # bytes; the daemon hangs up on more
        self._addresses = addresses
        self._name = name
        self._greeting = asyncio.Lock()
        self._welcome: Welcome | None = None
        self._socket: zmq.asyncio.Socket | None = None
        self._serving: asyncio.Task[None] | None = None
        self._waiting: dict[str, asyncio.Future[Answer]] = {}

    async def ask(self, request: Request, *, id: str, timeout: float) -> Any:
        """The reply to a request, or the error it was refused with."""
        with writing():
            call = encode_call(id, request, timeout, SystemClock().now())
        if len(call) > self._largest:
            raise UsageProblem(
                f"the request is {len(call):,} bytes, the most is {self._largest:,}",
                hint="pass large data as a file, and its path as the argument",
            )
        deadline = asyncio.get_running_loop().time() + timeout
        await self.greet(deadline)
        answer = await self._exchange(call, id, deadline)
        if answer.refusal is not None:
            raise error_of(answer.refusal)
        return decode_as(request.Reply, answer.body)

    async def greet(self, deadline: float, *, again: bool = False) -> Welcome:
        """Who is there; asked once, and again when the connection was lost."""
        async with self._greeting:
            if self._welcome is None or again:
                knock(self.address, self._addresses.hint)
                self._open()
                self._welcome = await self._hello(deadline)
            return self._welcome

    async def hung_up(self) -> None:
        """Until there is no connection (any more)."""
        if self._serving is not None:
            await asyncio.wait([self._serving])

    async def close(self) -> None:
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.wait([self._serving])

    async def _hello(self, deadline: float) -> Welcome:
        id = request_id()
        hello = Hello(version=VERSION, client=f"{self._name} {__version__}")
        try:
            answer = await self._exchange(encode_call(id, hello), id, deadline)
        except AnswerLost as lost:  # a greeting changes nothing, so nothing is in doubt
            raise DaemonUnreachable(lost.message, hint=self._addresses.hint) from None
        if answer.refusal is not None:
            raise error_of(answer.refusal)
        welcome = decode_as(Welcome, answer.body)
        if welcome.version != VERSION:
            raise ProtocolMismatch(
                f"the daemon is redrive {welcome.program} and speaks protocol {welcome.version};"
                f" this is redrive {__version__} and speaks {VERSION}",
                hint="install the same redrive on both sides",
            )
        return welcome

    async def _exchange(self, call: bytes, id: str, deadline: float) -> Answer:
        assert self._socket is not None
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[id] = answered
        sending = asyncio.ensure_future(self._socket.send(call))
        try:
            async with asyncio.timeout_at(deadline):
                # Sending waits for a connection; the monitor may learn that there is none.
                await asyncio.wait((sending, answered), return_when=asyncio.FIRST_COMPLETED)
                return await answered
        except (TimeoutError, _Gone) as error:
            self._welcome = None
            text = str(error) or f"the daemon at {self.address} gave no answer in time"
            if sending.done():
                raise AnswerLost(text, request=id) from None
            raise DaemonUnreachable(text, hint=self._addresses.hint) from None
        finally:
            sending.cancel()
            del self._waiting[id]

    def _open(self) -> None:
        if self._socket is None:
            self._socket = open_socket(zmq.DEALER, self.address, self._addresses.keys)
            monitor = self._socket.get_monitor_socket(_GONE | _NOBODY | _NOT_LET_IN)
            self._socket.connect(self.address)
            self._serving = asyncio.create_task(self._serve(self._socket, monitor))

    async def _serve(self, socket: zmq.asyncio.Socket, monitor: zmq.asyncio.Socket) -> None:
        """Hand out answers until the connection ends, and the socket with it.

        libzmq would connect it again, but for a moment it takes what is sent and drops it.
        """
        reading = asyncio.create_task(self._read(socket))
        try:
            happened = parse_monitor_message(await monitor.recv_multipart())
            self._fail_all(self._ended(happened["event"]))
        finally:
            reading.cancel()
            self._socket = self._welcome = None
            socket.disable_monitor()
            monitor.close(linger=0)
            socket.close(linger=0)

    async def _read(self, socket: zmq.asyncio.Socket) -> None:
        while True:
            frames = await socket.recv_multipart()
            try:
                answer = decode_answer(frames[-1])
            except UsageProblem as error:
                self._fail_all(error)
                continue
            # One that nobody waits for any more came after its deadline.
            waiting = self._waiting.get(answer.id)
            if waiting is not None and not waiting.done():
                waiting.set_result(answer)

    def _ended(self, event: int) -> Exception:
        if event == _NOT_LET_IN:
            return NotAllowed(
                f"the daemon at {self.address} does not let this key in",
                hint="`redrive keys list` on its machine shows the keys and their roles",
            )
        if event == _NOBODY:
            return _Gone(f"nobody listens at {self.address}")
        return _Gone(f"the daemon at {self.address} went away")

    def _fail_all(self, error: Exception) -> None:
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(error)


def request_id() -> str:
    """Unguessable and never met before: by it the daemon knows a request that comes twice."""
    return os.urandom(12).hex()
