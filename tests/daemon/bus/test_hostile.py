"""Peers that connect and misbehave: they cost themselves, and nobody else anything."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest
import zmq

from redrive.protocol import codec
from redrive.protocol.commands import Drain, Trigger
from redrive.protocol.envelope import MAX_MESSAGE, MAX_QUERY
from redrive.protocol.queries import Doctor
from redrived.bus import connections, door
from support.bus import Raw, Served, serving
from support.daemon import soon


def raw_connection(served: Served, name: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(served.bus.addresses[name].removeprefix("ipc://"))
    return connection


async def is_served(served: Served) -> bool:
    with Raw(zmq.DEALER, served.bus.addresses["query"]) as raw:
        return (await raw.ask(Doctor())).refusal is None


@pytest.mark.parametrize(
    "frames",
    [
        [b""] * 20_000,
        [b"x" * 512 * 1024] * 40,
        [codec.encode_call("a", Drain()), b""],
        [b"", codec.encode_call("a", Drain())],
    ],
    ids=["20000 empty frames", "20 MiB in frames", "a frame too many", "a frame too many before"],
)
async def test_a_message_of_several_frames_is_dropped(served: Served, frames: list[bytes]) -> None:
    with Raw(zmq.DEALER, served.bus.addresses["control"]) as raw:
        await raw.send(*frames)
        assert (await raw.ask(Trigger(schedule="x"))).refusal is None
    assert served.bus.dropped["frames"] == 1
    assert [type(request) for _, request in served.asked] == [Trigger]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        pytest.param(b"\x91" * 4_000_000, id="nested arrays"),
        pytest.param(b"\x93\xa1a" + b"\x81\xa4args" * 600_000 + b"\xc0\xc0", id="nested maps"),
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff",
        codec.encode_call("a", Drain())[:-1],
        b'{"type": "drain"}',
        b"\x93\xa1a\x81\xa4type\xa5dra",
    ],
)
async def test_what_is_no_call_is_dropped_and_counted(served: Served, data: bytes) -> None:
    with Raw(zmq.DEALER, served.bus.addresses["control"]) as raw:
        await raw.send(data)
        assert (await raw.ask(Drain())).refusal is None
    assert served.bus.dropped["unreadable"] == 1


@pytest.mark.parametrize(("name", "most"), [("query", MAX_QUERY), ("control", MAX_MESSAGE)])
async def test_a_message_that_is_too_large_ends_its_connection_only(
    served: Served, name: str, most: int
) -> None:
    with Raw(zmq.DEALER, served.bus.addresses[name]) as raw:
        await raw.send(b"x" * (most + 1))
        await soon(lambda: served.bus.dropped["frames"] == 1, "it is counted")
        await raw.send(b"x" * (most + 1_000_000))
        assert await is_served(served)


@pytest.mark.parametrize(
    "bytes_",
    [b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 10 + b"\x7f" * 60, b"\x00" * 10_000, bytes(range(256))],
)
@pytest.mark.parametrize("name", ["events", "query", "control"])
async def test_other_protocols_on_the_socket_are_no_trouble(
    served: Served, name: str, bytes_: bytes
) -> None:
    with raw_connection(served, name) as connection:
        connection.sendall(bytes_)
        assert await is_served(served)


async def test_a_connection_that_does_not_shake_hands_is_ended(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(door._OPTIONS, zmq.HANDSHAKE_IVL, 50)  # pyright: ignore
    async with serving(folder / "run") as served:
        with raw_connection(served, "query") as connection:
            connection.settimeout(10)
            received = await asyncio.to_thread(_read_to_end, connection)
            assert received.startswith(b"\xff")  # the daemon greeted, and gave up
            assert await is_served(served)


async def test_connections_beyond_the_limit_are_ended_and_the_first_are_served(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connections, "MOST", 10)
    async with serving(folder / "run") as served:
        with Raw(zmq.DEALER, served.bus.addresses["query"]) as first, ExitStack() as stack:
            assert (await first.ask(Doctor())).refusal is None
            for _ in range(50):
                stack.enter_context(raw_connection(served, "query"))
            await soon(lambda: "has 10 connections" in caplog.text, "some are ended")
            await soon(lambda: served.bus.connections["query"] == 10, "ten are left")
            assert (await first.ask(Doctor(), id="b")).refusal is None
        await soon(lambda: served.bus.connections["query"] == 0, "all have gone")
        assert await is_served(served)


async def test_two_peers_with_the_same_name_do_not_get_each_others_answers(
    served: Served,
) -> None:
    address = served.bus.addresses["query"]
    with Raw(zmq.DEALER, address, routing_id=b"\x01twin") as one:
        assert (await one.ask(Doctor(), id="one")).id == "one"
        with Raw(zmq.DEALER, address, routing_id=b"\x01twin") as other:
            await other.send(codec.encode_call("other", Doctor()))
            assert (await one.ask(Doctor(), id="again")).id == "again"
            with pytest.raises(TimeoutError):
                await other.receive(within=0.05)


async def test_a_peer_that_leaves_before_its_answer_is_no_trouble(served: Served) -> None:
    for number in range(20):
        with Raw(zmq.DEALER, served.bus.addresses["query"]) as raw:
            await raw.send(codec.encode_call(f"{number}", Doctor()))
    assert await is_served(served)


def _read_to_end(connection: socket.socket) -> bytes:
    received = b""
    while data := connection.recv(4096):
        received += data
    return received
