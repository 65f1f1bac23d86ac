"""From a request to the function that answers it, by an explicit table.

The role is the socket's: what reads comes over `query`, what changes over `control`, and each
of them understands only its own messages. What a request means is not decided here; that it
is read safely, done once and answered is.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from redrive.clock import Clock, SystemClock
from redrive.errors import Exit, ProtocolMismatch, RedriveError, UsageProblem
from redrive.protocol import VERSION, codec
from redrive.protocol.envelope import MAX_MESSAGE, Call, Refusal, Reply, Request
from redrive.protocol.queries import Fate, FateReply, Hello, Welcome
from redrived.api.lanes import Lane, Lanes
from redrived.api.reading import UnknownCommand, check_age, check_call, read_request
from redrived.api.receipts import Receipts
from redrived.bus import Asker, Bus
from redrived.store.receipts import Receipt

__all__ = ["Asker", "Handler", "Server", "Table"]

log = logging.getLogger(__name__)

Handler = Callable[[Asker, Any], Awaitable[Reply]]
Table = Mapping[type[Request], Handler]

GRACE = 1.0  # seconds that requests under way have left when the daemon stops
READ_OUT = 0.25  # seconds from the last answer to the end of its connection
LONGEST_REFUSAL = 100_000  # characters
# Seconds between tries to hand over an answer to somebody who does not read: 8 s in all.
DELIVER_AFTER = tuple(0.001 * 2**n for n in range(13))


class Server:
    """Answers what the bus hears: `Hello` and `Fate` by itself, the rest by the table."""

    def __init__(
        self,
        bus: Bus,
        table: Table,
        welcome: Callable[[Asker], Welcome],
        clock: Clock | None = None,
        was_done_elsewhere: Callable[[str, str], Awaitable[bool]] | None = None,
    ) -> None:
        self._bus = bus
        self._welcome = welcome
        self._clock = clock or SystemClock()
        self._table: Table = {**table, Hello: self._greet, Fate: self._tell_fate}
        self._receipts = Receipts(self._clock)
        self._was_done_elsewhere = was_done_elsewhere  # by another node: who asked, the request
        self._lanes = Lanes()
        self._under_way: set[asyncio.Task[None]] = set()
        self._answered_at = -READ_OUT  # by the loop's time

    def remember(self, earlier: Iterable[Receipt]) -> None:
        """What the daemon before this one has carried out."""
        self._receipts.remember(earlier)

    async def start(self) -> None:
        self._bus.listen(self._receive)

    async def stop(self) -> None:
        self._bus.deafen()
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=GRACE)
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        # libzmq drops what a client has not read by the time its connection ends, so that
        # `redrive drain` would be told that the daemon went away and not that it drains.
        await asyncio.sleep(self._answered_at + READ_OUT - asyncio.get_running_loop().time())

    def _receive(self, asker: Asker, route: bytes, data: bytes) -> bool:
        """Take it into work, unless it cannot be read or is refused at the door."""
        try:
            call = codec.decode_call(data)
        except UsageProblem:
            self._bus.dropped["unreadable"] += 1  # nobody can be told: the id is in there
            return False
        try:
            check_call(call)
            check_age(call, asker, self._clock.now())
            lane = self._lanes.enter(asker.role, route, len(data))
        except RedriveError as error:
            self._bus.answer(asker.role, route, _refused(call, error))
            return False
        task = asyncio.create_task(self._serve(asker, route, call, lane, len(data)))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return True

    async def _serve(self, asker: Asker, route: bytes, call: Call, lane: Lane, size: int) -> None:
        try:
            if asker.role == "operator":
                await self._carry_out(asker, route, call)
            else:
                async with asyncio.timeout(call.timeout), lane.turn:
                    await self._deliver(asker, route, await self._answer(asker, call))
        except TimeoutError:
            self._bus.dropped["late"] += 1
        finally:
            self._lanes.leave(lane, size)

    async def _carry_out(self, asker: Asker, route: bytes, call: Call) -> None:
        """Once begun, a change is not given up because nobody waits for it."""
        time = asyncio.get_running_loop().time
        deadline = None if call.timeout is None else time() + call.timeout
        answer = await self._once(asker, call)
        if deadline is not None and time() > deadline:
            raise TimeoutError
        await self._deliver(asker, route, answer)

    async def _deliver(self, asker: Asker, route: bytes, answer: bytes) -> None:
        """Who asks faster than they read has to wait for their turn, in their own lane."""
        for seconds in DELIVER_AFTER:
            if self._bus.answer(asker.role, route, answer):
                self._answered_at = asyncio.get_running_loop().time()
                return
            await asyncio.sleep(seconds)
        self._bus.dropped["answer"] += 1

    async def _once(self, asker: Asker, call: Call) -> bytes:
        try:
            return await self._receipts.once(asker.who, call, lambda: self._answer(asker, call))
        except RedriveError as error:  # the id belongs to another request, or to an earlier daemon
            return _refused(call, error)

    async def _answer(self, asker: Asker, call: Call) -> bytes:
        try:
            request = read_request(asker.role, call)
            handler = self._table.get(type(request))
            if handler is None:
                raise UnknownCommand(f"this daemon does not know {type(request).__name__}")
            answer = codec.encode_answer(call.id, await handler(asker, request))
            if len(answer) > MAX_MESSAGE:
                raise UsageProblem(
                    f"the answer has {len(answer):,} bytes, the most is {MAX_MESSAGE:,}",
                    hint="ask for less at once",
                )
        except RedriveError as error:
            return _refused(call, error)
        except Exception:
            number = secrets.token_hex(4)
            log.exception("trouble %s: a request of %s could not be answered", number, asker.who)
            return codec.encode_answer(call.id, _trouble(number))
        return answer

    async def _greet(self, asker: Asker, hello: Hello) -> Reply:
        welcome = self._welcome(asker)
        if hello.version != VERSION:
            raise ProtocolMismatch(
                f"the daemon is redrive {welcome.program} and speaks version {VERSION} of the"
                f" protocol, {hello.client[:80]!a} speaks {hello.version}",
                hint="install the same redrive on both sides, and restart the daemon",
            )
        return welcome

    async def _tell_fate(self, asker: Asker, fate: Fate) -> Reply:
        who, request = asker.who, fate.request
        answer = await self._receipts.answer_to(who, request)
        if answer is not None:
            refusal = codec.decode_answer(answer).refusal
            return FateReply(known=True, refusal=None if refusal is None else refusal.message)
        known = self._receipts.was_done_before(who, request)
        if not known and self._was_done_elsewhere is not None:
            known = await self._was_done_elsewhere(who, request)
        return FateReply(known=known)


def _refused(call: Call, error: RedriveError) -> bytes:
    refusal = Refusal(
        code=error.code,
        message=_cut(error.message),
        hint=_cut(error.hint),
        retry_after=getattr(error, "retry_after", None),
        exit_code=error.exit_code,
        order=error.order,
    )
    return codec.encode_answer(call.id[:64], refusal)


def _cut(text: str) -> str:
    """What a refusal quotes may be as long as the request, and longer once it is written out."""
    return text if len(text) <= LONGEST_REFUSAL else text[:LONGEST_REFUSAL] + "…"


def _trouble(number: str) -> Refusal:
    return Refusal(
        code="internal",
        message=f"the daemon failed at this (trouble {number})",
        hint="its log tells more under that number",
        exit_code=Exit.INTERNAL,
    )
