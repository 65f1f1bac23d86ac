"""Peers that send without end: they are cut off, and no queue that they fill ends the daemon."""

from __future__ import annotations

import asyncio
import signal
import socket
from pathlib import Path

import pytest
import zmq

from redrive.protocol.queries import Doctor
from redrived.bus import announcer, floods, requests
from support.bus import Raw, serving
from support.daemon import soon

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01NULL" + bytes(48)
PING = b"\x04\x07\x04PING\x00\x64"
MESSAGES = {"query": b"\x00\x01x", "control": b"\x00\x01x", "events": b"\x00\x07\x01events"}


def ready(kind: bytes) -> bytes:
    body = b"\x05READY\x0bSocket-Type" + len(kind).to_bytes(4, "big") + kind
    return bytes([4, len(body)]) + body


def flood_and_leave(path: Path, kind: bytes, message: bytes) -> None:
    """More than a queue of 64 holds, a heartbeat behind it, and gone before it is read."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))
        try:
            connection.sendall(GREETING)
            connection.recv(64)
            connection.sendall(ready(kind))
            connection.recv(1_000)
            connection.sendall(message * 200 + PING + message * 10)
        except (BrokenPipeError, ConnectionResetError):
            pass  # cut off already


@pytest.mark.parametrize("name", MESSAGES)
async def test_a_peer_that_floods_and_leaves_does_not_end_the_daemon(
    daemon: asyncio.subprocess.Process, folder: Path, name: str
) -> None:
    kind = b"SUB" if name == "events" else b"DEALER"
    path = folder / "run" / name
    daemon.send_signal(signal.SIGUSR1)
    for _ in range(5):
        await asyncio.to_thread(flood_and_leave, path, kind, MESSAGES[name])
    with Raw(zmq.DEALER, f"ipc://{folder}/run/query") as raw:
        assert (await raw.ask(Doctor())).refusal is None
    assert daemon.returncode is None


@pytest.mark.parametrize("name", ["query", "control"])
async def test_who_sends_much_that_is_useless_is_cut_off(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(requests, "FLOOD", 100)
    monkeypatch.setattr(floods, "SECOND", 0.2)
    async with serving(folder / "run") as served:
        with Raw(zmq.DEALER, served.bus.addresses[name]) as raw:
            for _ in range(500):
                await raw.send(b"\xc1")
            await soon(lambda: served.bus.dropped["flood"] > 0, "it is too much")
        await asyncio.sleep(floods.SECOND)  # another process would not have to wait
        with Raw(zmq.DEALER, served.bus.addresses["query"]) as another:
            assert (await another.ask(Doctor())).refusal is None


async def test_who_asks_much_is_answered(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "FLOOD", 100)
    async with serving(folder / "run") as served:
        with Raw(zmq.DEALER, served.bus.addresses["query"]) as raw:
            for _ in range(500):
                assert (await raw.ask(Doctor())).refusal is None


async def test_who_subscribes_without_end_is_cut_off(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(announcer, "FLOOD", 100)
    async with serving(folder / "run") as served:
        with Raw(zmq.XSUB, served.bus.addresses["events"]) as raw:
            for _ in range(500):
                await raw.send(b"\x01events")
            await soon(lambda: served.bus.dropped["subscription"] > 0, "it is too much")
