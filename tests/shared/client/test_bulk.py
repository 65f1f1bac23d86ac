from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from redrive.client import AsyncClient
from redrive.errors import RedriveError, UsageProblem
from redrive.protocol.commands import Enqueue, Enqueued, JobOrder, RunOrder, Start, Started
from redrive.protocol.envelope import Refusal
from support.peer import Peer


def accept(peer: Peer) -> None:
    numbers = iter(range(1, 1_000_000))

    def accepted(request: Enqueue) -> Enqueued:
        ids = [next(numbers) for _ in request.orders]
        return Enqueued(count=len(ids), created=len(ids), first_id=ids[0], last_id=ids[-1])

    peer.replies["Enqueue"] = accepted


async def test_many_orders_are_streamed_in_groups(peer: Peer, client: AsyncClient) -> None:
    accept(peer)
    reply = await client.enqueue_many("parse", (JobOrder(args={"n": n}) for n in range(4500)))
    assert (reply.count, reply.created, reply.first_id, reply.last_id) == (4500, 4500, 1, 4500)
    assert [len(asked.orders) for asked in peer.asked_for("Enqueue")] == [2000, 2000, 500]


async def test_large_orders_travel_in_smaller_groups(peer: Peer, client: AsyncClient) -> None:
    accept(peer)
    order = JobOrder(args={"text": "x" * 300_000})
    await client.enqueue_many("parse", [order] * 3)
    assert [len(asked.orders) for asked in peer.asked_for("Enqueue")] == [1, 1, 1]


async def test_runs_that_were_there_before_are_the_first_of_all(
    peer: Peer, client: AsyncClient
) -> None:
    parts = [("r7", "r2006"), ("r3", "r5")]  # the keys of the second group are under way

    def started(request: Start) -> Started:
        first, last = parts.pop(0)
        return Started(count=len(request.orders), created=0, first_id=first, last_id=last)

    peer.replies["Start"] = started
    reply = await client.start_many("fetch", [RunOrder()] * 2003)
    assert (reply.count, reply.first_id, reply.last_id) == (2003, "r3", "r2006")


async def test_no_orders_are_no_request(peer: Peer, client: AsyncClient) -> None:
    assert (await client.enqueue_many("parse", [])).count == 0
    assert peer.asked == []


async def test_a_refusal_halfway_says_how_many_were_accepted(
    peer: Peer, client: AsyncClient
) -> None:
    def accepted(request: Enqueue) -> Enqueued | Refusal:
        if len(request.orders) < 2000:
            return Refusal(code="try_later", message="the disk is full", hint="make room")
        return Enqueued(count=2000, created=2000, first_id=1, last_id=2000)

    peer.replies["Enqueue"] = accepted
    with pytest.raises(RedriveError, match="the disk is full") as caught:
        await client.enqueue_many("parse", [JobOrder()] * 2001)
    assert caught.value.hint == "the first 2,000 were accepted; make room"


async def test_an_order_that_cannot_be_made_halfway_says_how_many_were_accepted(
    peer: Peer, client: AsyncClient
) -> None:
    def orders() -> Iterator[JobOrder]:
        for _ in range(2500):
            yield JobOrder()
        raise UsageProblem("line 2501 is none", hint="mend it")

    accept(peer)
    with pytest.raises(UsageProblem) as caught:
        await client.enqueue_many("parse", orders())
    assert caught.value.hint == "the first 2,000 were accepted; mend it"


async def test_an_order_that_cannot_be_sent_says_which_it_is(
    peer: Peer, client: AsyncClient
) -> None:
    accept(peer)
    orders = [JobOrder()] * 2500 + [JobOrder(args={"x": object()})]
    with pytest.raises(UsageProblem, match="this cannot be sent") as caught:
        await client.enqueue_many("parse", orders)
    assert caught.value.order == 2500
    assert caught.value.hint.startswith("the first 2,000 were accepted; ")


async def test_what_is_no_order_is_refused_and_not_sent_as_an_empty_one(
    peer: Peer, client: AsyncClient
) -> None:
    rows: Any = [{"path": "a.png"}]
    with pytest.raises(UsageProblem, match=r"^{'path': 'a\.png'} is no JobOrder; as in") as caught:
        await client.enqueue_many("parse", rows)
    assert caught.value.order == 0
    with pytest.raises(UsageProblem, match="is no RunOrder"):
        await client.start_many("fetch", rows)
    assert peer.asked == []
