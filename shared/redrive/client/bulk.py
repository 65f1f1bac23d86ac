"""Many orders in few requests: groups that fit a message, sent one after the other."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from redrive.errors import RedriveError, UsageProblem
from redrive.protocol.codec import encode
from redrive.protocol.commands import Enqueue, Enqueued, JobOrder, RunOrder, Start, Started
from redrive.protocol.envelope import Request
from redrive.protocol.writing import writing

_MOST_ORDERS = 2000
_MOST_BYTES = 512 * 1024
_TIMEOUT = 60.0  # seconds for one group

Order = TypeVar("Order", bound=Struct)


class Asked(Protocol):
    async def ask(self, request: Request, *, timeout: float | None = None) -> Any: ...


async def enqueue(client: Asked, task: str, orders: Iterable[JobOrder]) -> Enqueued:
    total = Enqueued(count=0, created=0, first_id=0, last_id=0)
    with _telling_of(lambda: total.count):
        for group in groups(orders, JobOrder):
            request = Enqueue(task=task, orders=group)
            reply: Enqueued = await client.ask(request, timeout=_TIMEOUT)
            total = Enqueued(
                count=total.count + reply.count,
                created=total.created + reply.created,
                first_id=min(total.first_id or reply.first_id, reply.first_id),
                last_id=max(total.last_id, reply.last_id),
                jobs=total.jobs + reply.jobs,
            )
    return total


async def start(
    client: Asked, pipeline: str, orders: Iterable[RunOrder], mode: str | None
) -> Started:
    total = Started(count=0, created=0, first_id="", last_id="")
    with _telling_of(lambda: total.count):
        for group in groups(orders, RunOrder):
            request = Start(pipeline=pipeline, orders=group, mode=mode)
            reply: Started = await client.ask(request, timeout=_TIMEOUT)
            total = Started(
                count=total.count + reply.count,
                created=total.created + reply.created,
                first_id=min(total.first_id or reply.first_id, reply.first_id, key=_number),
                last_id=max(total.last_id or reply.last_id, reply.last_id, key=_number),
                runs=total.runs + reply.runs,
            )
    return total


def _number(run: str) -> int:
    return int(run.removeprefix("r"))


def groups(orders: Iterable[Order], kind: type[Order]) -> Iterator[list[Order]]:
    group: list[Order] = []
    room = _MOST_BYTES
    for order in orders:
        try:
            size = _size(order, kind)
        except UsageProblem as error:
            error.order = len(group)  # of those that nobody has accepted yet
            raise
        if group and (len(group) == _MOST_ORDERS or size > room):
            yield group
            group, room = [], _MOST_BYTES
        group.append(order)
        room -= size
    if group:
        yield group


def _size(order: Order, kind: type[Order]) -> int:
    if not isinstance(order, kind):
        raise UsageProblem(
            f"{reprlib.repr(order)} is no {kind.__name__}",
            hint=f"as in `{kind.__name__}(args=...)`, of redrive.protocol.commands",
        )
    with writing(order):
        return len(encode(order))


@contextmanager
def _telling_of(accepted: Callable[[], int]) -> Generator[None]:
    """Have what ends it halfway, a refusal or an order that cannot be made, say what was done."""
    try:
        yield
    except RedriveError as error:
        if error.order is not None:
            error.order += accepted()
        if accepted():
            done = f"the first {accepted():,} were accepted"
            error.hint = "; ".join(filter(None, [done, error.hint]))
        raise
