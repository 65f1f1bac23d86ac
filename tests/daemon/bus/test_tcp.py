"""Over tcp: keys decide who gets in, and as what."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import zmq
import zmq.asyncio
from zmq.utils.monitor import parse_monitor_message

from redrive import keys
from redrive.client import AsyncClient
from redrive.config.sections import Bus as Settings
from redrive.errors import ConfigProblem, NotAllowed
from redrive.protocol.announcements import HEAD
from redrive.protocol.commands import Drain
from redrive.protocol.queries import Doctor
from redrived.bus import Bus
from support.bus import Raw, Served, serving
from support.daemon import soon

ANYWHERE = "tcp://127.0.0.1:*"


@pytest.fixture
def key_folder(folder: Path) -> Path:
    made = folder / "keys"
    keys.new(made, "vera", "viewer")
    keys.new(made, "otto", "operator")
    return made


@pytest_asyncio.fixture
async def remote(folder: Path, key_folder: Path) -> AsyncIterator[Served]:
    settings = Settings(events=ANYWHERE, query=ANYWHERE, control=ANYWHERE, curve=str(key_folder))
    async with serving(folder / "run", settings=settings) as served:
        yield served


def secrets_of(name: str, folder: Path) -> dict[str, bytes]:
    lines = (folder / f"{name}.secret").read_text().splitlines()
    found = dict(line.strip().split(" = ") for line in lines if " = " in line)
    return {
        "curve_publickey": found["public-key"].strip('"').encode(),
        "curve_secretkey": found["secret-key"].strip('"').encode(),
        "curve_serverkey": keys.server_public(folder),
    }


async def is_let_in(address: str, options: dict[str, bytes], kind: int = zmq.DEALER) -> bool:
    """Whether the handshake of a socket with these keys succeeds."""
    socket = zmq.asyncio.Context.instance().socket(kind)
    for name, value in options.items():
        setattr(socket, name, value)
    monitor = socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED)
    socket.connect(address)
    try:
        async with asyncio.timeout(10):
            happened = parse_monitor_message(await monitor.recv_multipart())
    finally:
        socket.disable_monitor()
        monitor.close(0)
        socket.close(0)
    return happened["event"] == zmq.EVENT_HANDSHAKE_SUCCEEDED


async def test_an_operator_changes_and_is_known_by_the_name_of_the_key(
    remote: Served, key_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDRIVE_KEY", str(key_folder / "otto.secret"))
    async with AsyncClient(remote.addresses) as client:
        await client.ask(Drain())
        await client.ask(Doctor())
    assert {(asker.who, asker.role, asker.uid) for asker, _ in remote.asked} == {
        ("key:otto", "operator", None),
        ("key:otto", "viewer", None),
    }


async def test_a_viewer_looks_and_changes_nothing(
    remote: Served, key_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDRIVE_KEY", str(key_folder / "vera.secret"))
    async with AsyncClient(remote.addresses) as client:
        await client.ask(Doctor())
        with pytest.raises(NotAllowed):
            await client.ask(Drain())
    assert [asker.who for asker, _ in remote.asked] == ["key:vera"]


async def test_a_viewer_hears_events(remote: Served, key_folder: Path) -> None:
    remote.bus.head(7, 0)
    with Raw(zmq.SUB, remote.bus.addresses["events"], **secrets_of("vera", key_folder)) as raw:
        raw.socket.subscribe(HEAD)
        assert (await raw.receive())[0] == HEAD


@pytest.mark.parametrize(
    ("socket", "kind"), [("events", zmq.SUB), ("query", zmq.DEALER), ("control", zmq.DEALER)]
)
async def test_strangers_are_not_let_in(
    remote: Served, key_folder: Path, socket: str, kind: int
) -> None:
    address = remote.bus.addresses[socket]
    public, secret = zmq.curve_keypair()
    stranger = {
        "curve_publickey": public,
        "curve_secretkey": secret,
        "curve_serverkey": keys.server_public(key_folder),
    }
    misled = {**secrets_of("otto", key_folder), "curve_serverkey": zmq.curve_keypair()[0]}
    assert await is_let_in(address, secrets_of("otto", key_folder), kind)
    assert not await is_let_in(address, stranger, kind)
    assert not await is_let_in(address, misled, kind)
    assert not await is_let_in(address, {}, kind)


async def test_a_key_that_is_taken_away_opens_no_door_any_more(
    remote: Served, key_folder: Path
) -> None:
    address = remote.bus.addresses["query"]
    vera = secrets_of("vera", key_folder)
    assert await is_let_in(address, vera)
    (key_folder / "viewers" / "vera.public").unlink()
    assert not await is_let_in(address, vera)


async def test_a_new_key_is_let_in_without_a_restart(remote: Served, key_folder: Path) -> None:
    keys.new(key_folder, "nina", "viewer")
    assert await is_let_in(remote.bus.addresses["query"], secrets_of("nina", key_folder))
    assert not await is_let_in(remote.bus.addresses["control"], secrets_of("nina", key_folder))


async def test_nobody_is_let_in_when_a_key_was_tampered_with(
    remote: Served, key_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (key_folder / "viewers" / "vera.public").chmod(0o666)
    address = remote.bus.addresses["query"]
    assert not await is_let_in(address, secrets_of("otto", key_folder))
    await soon(lambda: "can be written by others" in caplog.text, "it is logged")


async def test_nobody_is_let_in_when_nobody_answers_for_the_keys(
    remote: Served, key_folder: Path
) -> None:
    gate = remote.bus._gate  # pyright: ignore[reportPrivateUsage]
    assert gate is not None
    gate.stop()
    address = remote.bus.addresses["query"]
    assert not await is_let_in(address, secrets_of("otto", key_folder))


async def test_keys_are_for_tcp_and_do_not_stand_between_local_users(
    folder: Path, key_folder: Path
) -> None:
    settings = Settings(query=ANYWHERE, curve=str(key_folder))
    async with serving(folder / "run", settings=settings) as served:
        with Raw(zmq.DEALER, served.bus.addresses["control"]) as raw:
            assert (await raw.ask(Drain())).refusal is None


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:*", "tcp://0.0.0.0:*"])
async def test_tcp_without_keys_is_refused(folder: Path, address: str) -> None:
    bus = Bus(Settings(control=address), folder / "run", "one")
    with pytest.raises(ConfigProblem, match="there are no keys"):
        await bus.start()
    await bus.stop()


@pytest.mark.parametrize("file", ["server.secret", "viewers/vera.public"])
async def test_a_key_file_that_others_can_write_keeps_the_daemon_from_starting(
    folder: Path, key_folder: Path, file: str
) -> None:
    (key_folder / file).chmod(0o666)
    bus = Bus(Settings(query=ANYWHERE, curve=str(key_folder)), folder / "run", "one")
    with pytest.raises(ConfigProblem, match=r"can be (written|read) by others"):
        await bus.start()
    await bus.stop()


async def test_an_address_in_use_is_named(remote: Served, key_folder: Path, folder: Path) -> None:
    taken = remote.bus.addresses["query"]
    bus = Bus(Settings(query=taken, curve=str(key_folder)), folder / "other", "two")
    with pytest.raises(ConfigProblem, match=r"query socket cannot be opened at tcp://"):
        await bus.start()
    await bus.stop()
