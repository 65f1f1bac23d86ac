"""Publishing: nothing when nobody listens, everything to those who keep up, and no more."""

from __future__ import annotations

from collections.abc import Iterator

import zmq

from redrive.models import Event
from redrive.protocol import codec
from redrive.protocol.announcements import EVENTS, HEAD, VITALS, EventBatch, Head, Vitals
from redrived.bus import announcer
from support.bus import Raw, Served, elsewhere, event
from support.daemon import soon


async def listen(served: Served, *topics: bytes) -> Raw:
    """A listener whose subscription is known to the daemon."""
    raw = Raw(zmq.SUB, served.bus.addresses["events"])
    served.bus.head(0, 0)
    for topic in topics:
        raw.socket.subscribe(topic)
    raw.socket.subscribe(HEAD)
    assert (await raw.receive())[0] == HEAD
    return raw


async def batch(raw: Raw) -> EventBatch:
    while True:
        topic, payload = await raw.receive()
        if topic == EVENTS:
            return codec.decode_as(EventBatch, payload)


async def test_events_are_not_even_looked_at_when_nobody_listens(served: Served) -> None:
    def never() -> Iterator[Event]:
        raise AssertionError("looked at")
        yield

    served.bus.publish(never())


async def test_a_listener_is_told_events_in_order_with_the_epoch(served: Served) -> None:
    with await listen(served, EVENTS) as raw:
        served.bus.publish([event(1), event(2)])
        served.bus.publish([event(3)])
        told = await batch(raw)
    assert told == EventBatch(epoch="one", events=[event(1), event(2), event(3)])


async def test_a_listener_is_told_only_what_it_subscribed_to(served: Served) -> None:
    vitals = Vitals(epoch="one", at=1, node="main", cpu=1.0, memory=1, jobs=[])
    with await listen(served, VITALS) as raw:
        served.bus.publish([event(1)])
        served.bus.vitals(vitals)
        topic, payload = await raw.receive()
    assert topic == VITALS
    assert codec.decode_as(Vitals, payload) == vitals


async def test_when_the_last_listener_leaves_events_are_not_looked_at_again(
    served: Served,
) -> None:
    looked_at = 0

    def counting() -> Iterator[Event]:
        nonlocal looked_at
        looked_at += 1
        yield event(looked_at)

    def is_ignored() -> bool:
        before = looked_at
        served.bus.publish(counting())
        return looked_at == before

    with await listen(served, EVENTS):
        assert not is_ignored()
    await soon(is_ignored, "events are ignored")


async def test_a_newcomer_learns_at_once_how_far_the_log_is(served: Served) -> None:
    served.bus.head(41, 7)
    with Raw(zmq.SUB, served.bus.addresses["events"]) as raw:
        raw.socket.subscribe(HEAD)
        topic, payload = await raw.receive()
    assert topic == HEAD
    assert codec.decode_as(Head, payload) == Head(epoch="one", seq=41, at=7)


async def test_the_head_never_overtakes_the_events_it_counts(served: Served) -> None:
    with await listen(served, EVENTS) as raw:
        served.bus.publish([event(1)])
        served.bus.head(1, 0)
        topics = [(await raw.receive())[0] for _ in range(2)]
    assert topics == [EVENTS, HEAD]


async def test_many_events_are_told_in_messages_of_a_sane_size(served: Served) -> None:
    texts = ["x" * 1000, "y" * announcer.BATCH, *(["z" * 1000] * 1000)]
    events = [
        Event(seq=seq, at=0, type="action_error", data={"message": text})
        for seq, text in enumerate(texts, 1)
    ]
    sizes: list[int] = []
    told: list[Event] = []
    with await listen(served, EVENTS) as raw:
        served.bus.publish(events)
        while len(told) < len(events):
            topic, payload = await raw.receive()
            if topic == EVENTS:
                sizes.append(len(payload))
                told += codec.decode_as(EventBatch, payload).events
    assert told == events
    assert [size for size in sizes if size > announcer.BATCH] == [sizes[1]]


async def test_what_a_listener_publishes_goes_nowhere(served: Served) -> None:
    """Only the daemon tells events; whoever tries is cut off."""
    forged = """
import sys, zmq
context = zmq.Context()
socket = context.socket(zmq.XSUB)
gone = socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
socket.connect(sys.argv[1])
socket.send(b"\\x01events")
socket.send_multipart([b"events", b"forged"])
print("cut off" if gone.poll(10_000) else "still there")
context.destroy(linger=0)
"""
    with await listen(served, EVENTS) as raw:
        assert await elsewhere(forged, served.bus.addresses["events"]) == "cut off\n"
        served.bus.publish([event(1)])
        assert (await batch(raw)).events == [event(1)]
    assert served.bus.dropped["subscription"] >= 1


async def test_topics_that_are_not_ours_are_limited_and_their_sender_is_cut_off(
    served: Served,
) -> None:
    flood = """
import sys, zmq
context = zmq.Context()
socket = context.socket(zmq.XSUB)
gone = socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
socket.setsockopt(zmq.SNDTIMEO, 100)
socket.connect(sys.argv[1])
for number in range(100_000):
    try:
        socket.send(b"\\x01" + b"%032d" % number)
    except zmq.Again:
        break
    if gone.poll(0):
        break
print("cut off" if gone.poll(10_000) else "still there")
context.destroy(linger=0)
"""
    with await listen(served, EVENTS) as raw:
        assert await elsewhere(flood, served.bus.addresses["events"]) == "cut off\n"
        served.bus.publish([event(1)])
        assert (await batch(raw)).events == [event(1)]


async def test_a_topic_of_a_megabyte_costs_only_its_sender(served: Served) -> None:
    """libzmq keeps topics in a tree that it walks recursively; a deep one ends the process."""
    huge = """
import os, sys, zmq
socket = zmq.Context().socket(zmq.XSUB)
gone = socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
socket.connect(sys.argv[1])
socket.send(b"\\x01" + b"x" * 1_000_000)
print("cut off" if gone.poll(10_000) else "still there", flush=True)
os._exit(0)
"""
    with await listen(served, EVENTS) as raw:
        assert await elsewhere(huge, served.bus.addresses["events"]) == "cut off\n"
        served.bus.publish([event(1)])
        assert (await batch(raw)).events == [event(1)]
