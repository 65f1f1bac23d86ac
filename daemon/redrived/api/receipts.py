"""What commands were answered, so that the same one coming twice does the thing once.

An answer can be lost on its way. Its asker may send the same request again and gets the same
answer, or may ask what became of it. A receipt belongs to who asked: nobody learns of other
people's requests, or stands in their way. Answers go with the daemon; that a request changed
something is in the store, and known to the next daemon.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from zlib import crc32

from msgspec import Struct

from redrive.clock import Clock
from redrive.errors import DoneBefore, UsageProblem
from redrive.protocol.envelope import Call
from redrived.store.receipts import Carried, Receipt, carried

KEPT = 600.0  # seconds
MOST = 20_000
MOST_BYTES = 16 * 1024 * 1024

_Key = tuple[str, str]  # who asked, the request's id


class _Answered(Struct, frozen=True):
    body: int  # the request's checksum
    answer: bytes
    at: float


class _Work(Struct, frozen=True):
    body: int
    answer: asyncio.Future[bytes]


class Receipts:
    """The answers of the last ten minutes, the newest of them when they are too many."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._under_way: dict[_Key, _Work] = {}
        self._kept: OrderedDict[_Key, _Answered] = OrderedDict()
        self._bytes = 0
        self._earlier: dict[_Key, int] = {}  # by the daemon before this one; their checksums
        self._earlier_until = 0.0

    def __len__(self) -> int:
        return len(self._kept)

    async def once(self, who: str, call: Call, work: Callable[[], Awaitable[bytes]]) -> bytes:
        """Do the work, unless it was done or is being done; its answer in any case."""
        key = (who, call.id)
        body = crc32(call.body)
        self._forget_old()
        known = self._kept.get(key) or self._under_way.get(key)
        if (known.body if known else self._earlier.get(key, body)) != body:
            raise UsageProblem(
                f"the request id {call.id} was used for another request",
                hint="every request needs an id of its own",
            )
        if known:
            return await _answer_of(known)
        if key in self._earlier:
            raise DoneBefore(
                "this was done before the daemon was restarted",
                hint="what it was answered is forgotten; `redrive events` shows what it did",
            )
        answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._under_way[key] = _Work(body, answered)
        carried.set(Carried(Receipt(who, call.id, body)))
        try:
            answer = await work()
            answered.set_result(answer)
        finally:
            answered.cancel()  # of those who joined, when the daemon stops meanwhile
            del self._under_way[key]
        self._kept[key] = _Answered(body, answer, self._clock.monotonic())
        self._bytes += len(answer)
        return answer

    def remember(self, earlier: Iterable[Receipt]) -> None:
        """What another daemon has carried out on this store, just before this one."""
        self._earlier = {(each.who, each.id): each.body for each in earlier}
        self._earlier_until = self._clock.monotonic() + KEPT

    def was_done_before(self, who: str, id: str) -> bool:
        self._forget_old()
        return (who, id) in self._earlier

    async def answer_to(self, who: str, id: str) -> bytes | None:
        """What a request was answered; waits for one that is under way."""
        self._forget_old()
        known = self._kept.get((who, id)) or self._under_way.get((who, id))
        return None if known is None else await _answer_of(known)

    def _forget_old(self) -> None:
        if self._earlier and self._clock.monotonic() > self._earlier_until:
            self._earlier.clear()
        too_old = self._clock.monotonic() - KEPT
        while self._kept:
            oldest = next(iter(self._kept.values()))
            if oldest.at > too_old and len(self._kept) <= MOST and self._bytes <= MOST_BYTES:
                return
            self._kept.popitem(last=False)
            self._bytes -= len(oldest.answer)


async def _answer_of(known: _Answered | _Work) -> bytes:
    if isinstance(known, _Answered):
        return known.answer
    return await asyncio.shield(known.answer)
