"""Asking the daemon over one of its sockets: greet it first, then request by request."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine
from selectors import BaseSelector
from typing import Any

from redrive import __version__
from redrive.client.addresses import Addresses, knock
from redrive.client.line import Gone, Line, Silent
from redrive.client.refusals import AnswerLost, error_of, unreachable
from redrive.clock import SystemClock
from redrive.errors import (
    DaemonUnreachable,
    NotAllowed,
    ProtocolMismatch,
    RedriveError,
    UsageProblem,
)
from redrive.protocol import VERSION
from redrive.protocol.codec import decode_as, encode_call
from redrive.protocol.envelope import Answer, Request
from redrive.protocol.queries import Hello, Welcome
from redrive.protocol.writing import writing


class NotConnected(Exception):
    """Nothing was sent: there is nobody yet, or no longer, to whom it could be."""


class Channel:
    """Belongs to one running loop; opened by the first question."""

    def __init__(self, address: str, addresses: Addresses, *, name: str, largest: int) -> None:
        self.address = address
        self._largest = largest  # bytes; the daemon hangs up on more
        self._addresses = addresses
        self._name = name
        self._greeting = asyncio.Lock()
        self._welcome: Welcome | None = None
        self._was_let_in = False
        self._line: Line | None = None

    async def ask(self, request: Request, *, id: str, timeout: float) -> Any:
        """The reply to a request, or the error it was refused with."""
        call = self._written(request, id, timeout)
        deadline = asyncio.get_running_loop().time() + timeout
        if self._line is not None:
            self._line.look()
        if self._welcome is None:
            await self.greet(deadline)
        return _reply(request, await self._exchange(call, id, deadline))

    def ask_here(
        self,
        request: Request,
        *,
        id: str,
        timeout: float,
        selector: BaseSelector,
        run: Callable[[Coroutine[Any, Any, Answer]], Answer],
    ) -> Any:
        """The same for a thread that waits: the loop stands still, unless it is needed.

        The selector is the loop's, and `run` lets it run until a coroutine is through.
        """
        call = self._written(request, id, timeout)
        deadline = time.monotonic() + timeout
        if self._line is not None:
            self._line.look()
        line = self._line
        if line is None or self._welcome is None:
            raise NotConnected
        try:
            answered = line.post(id, call)
            is_there = line.read_until(answered, deadline, selector)
            answer = answered.result() if is_there else run(_within(answered, deadline))
        except (TimeoutError, Gone) as error:
            raise self._lost(line, id, error) from None
        finally:
            line.forget(id)
        return _reply(request, answer)

    async def greet(self, deadline: float, *, again: bool = False) -> Welcome:
        """Who is there; asked once, and again when the connection was lost."""
        async with self._greeting:
            if self._welcome is None or again:
                self._knock()
                self._open()
                self._welcome = await self._hello(deadline)
                self._was_let_in = True
            return self._welcome

    def _knock(self) -> None:
        try:
            knock(self.address, self._addresses.hint)
        except NotAllowed as closed:
            if not self._was_let_in:
                raise
            # systemd makes the folder for the daemon's own group, and who starts closes it until
            # all sockets are there: somebody who was let in before will be again.
            raise DaemonUnreachable(closed.message, hint=closed.hint) from None

    async def hung_up(self) -> None:
        """Until there is no connection (any more)."""
        if self._line is not None:
            await self._line.over.wait()

    async def close(self) -> None:
        if self._line is not None:
            self._line.end(Gone("this client was closed"))

    async def _hello(self, deadline: float) -> Welcome:
        id = request_id()
        hello = Hello(version=VERSION, client=f"{self._name} {__version__}")
        try:
            answer = await self._exchange(encode_call(id, hello), id, deadline)
        except AnswerLost as lost:
            raise lost.of_a_question(self._addresses.hint) from None
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
        line = self._line
        assert line is not None
        try:
            async with asyncio.timeout_at(deadline):
                return await line.exchange(id, call)
        except (TimeoutError, Gone) as error:
            raise self._lost(line, id, error) from None
        finally:
            line.forget(id)

    def _written(self, request: Request, id: str, timeout: float) -> bytes:
        with writing(request):
            call = encode_call(id, request, timeout, SystemClock().now())
        if len(call) > self._largest:
            raise UsageProblem(
                f"the request is {len(call):,} bytes, the most is {self._largest:,}",
                hint="pass large data as a file, and its path as the argument",
            )
        return call

    def _lost(self, line: Line, id: str, error: TimeoutError | Gone) -> RedriveError:
        """What to tell whoever waited for this answer."""
        self._welcome = None
        text = str(error) or f"the daemon at {self.address} gave no answer in time"
        if line.forget(id):
            return unreachable(text, self._addresses.hint, is_silent=isinstance(error, Silent))
        return AnswerLost(text, request=id, is_silent=isinstance(error, TimeoutError))

    def _open(self) -> None:
        if self._line is None:
            self._line = Line(self.address, self._addresses.keys, self._hear_end)

    def _hear_end(self) -> None:
        self._line = self._welcome = None


def _reply(request: Request, answer: Answer) -> Any:
    if answer.refusal is not None:
        raise error_of(answer.refusal)
    return decode_as(request.Reply, answer.body)


async def _within(answered: asyncio.Future[Answer], deadline: float) -> Answer:
    async with asyncio.timeout_at(deadline):
        return await answered


def request_id() -> str:
    """Unguessable and never met before: by it the daemon knows a request that comes twice."""
    return os.urandom(12).hex()
