from __future__ import annotations

import asyncio
import contextlib
import socket
from pathlib import Path

import pytest
from starlette.requests import Request

from redrive.config.sections import Http
from redrive.errors import ConfigProblem, RedriveError, TryLater
from redrived.http import connection, server
from redrived.http.access import Access, split
from redrived.store.say import Said, say
from support.daemon import soon
from support.http_side import TOKEN, Side, http_side


async def test_every_change_needs_the_token(side: Side) -> None:
    for path in ("/v1/jobs", "/v1/jobs/1/requeue", "/v1/jobs/1/cancel", "/v1/jobs/1/kill"):
        for given in (b"", b"Bearer", b"Basic x", TOKEN.encode(), b"Bearer t\xf6ken"):
            refused = await side.client.post(path, headers=[(b"Authorization", given)])
            assert refused.status_code == 401
            assert refused.headers["www-authenticate"].startswith("Bearer")


async def test_without_a_token_file_nothing_can_be_changed(tmp_path: Path) -> None:
    async with http_side(tmp_path, "") as side:
        assert (await side.post("/v1/jobs", {"task": "work"})).status_code == 403
        assert (await side.get("/v1/jobs")).status_code == 200


async def test_a_new_token_counts_from_the_next_request_on(side: Side, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("another token, quite long")
    assert (await side.post("/v1/jobs", {"task": "work"})).status_code == 401
    made = await side.post("/v1/jobs", {"task": "work"}, token="another token, quite long")
    assert made.status_code == 201


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", ""])
async def test_a_page_of_somebody_else_gets_nowhere(side: Side, host: str) -> None:
    for path in ("/v1/jobs", "/metrics", "/healthz", "/openapi.json"):
        assert (await side.get(path, headers={"Host": host})).status_code == 421


async def test_hosts_that_the_config_names_are_ours(tmp_path: Path) -> None:
    async with http_side(tmp_path, 'hosts = ["jobs.example.org"]') as side:
        for host in ("jobs.example.org", "JOBS.example.org:8383", "localhost:1", "[::1]:80"):
            assert (await side.get("/v1/jobs", headers={"Host": host})).status_code == 200


async def test_beyond_loopback_reading_needs_the_token_too(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    access = Access(lambda: Http(listen="0.0.0.0:80", token_file=str(token), hosts=["h"]))

    def asking(*headers: tuple[bytes, bytes]) -> Request:
        return Request({"type": "http", "headers": [(b"host", b"h"), *headers]})

    with pytest.raises(RedriveError, match="needs the token"):
        access.check(asking(), "read")
    access.check(asking((b"authorization", f"bearer {TOKEN}".encode())), "read")
    access.check(asking(), "nothing")


@pytest.mark.parametrize(
    ("content", "mode", "told"),
    [
        ("", 0o600, "shorter than 16"),
        ("short", 0o600, "shorter than 16"),
        (TOKEN, 0o644, "open to others"),
        (None, 0, "cannot be read"),
    ],
)
async def test_a_bad_token_file_stops_the_start(
    tmp_path: Path, content: str | None, mode: int, told: str
) -> None:
    token = tmp_path / "token"
    if content is not None:
        token.write_text(content)
        token.chmod(mode)
    with pytest.raises(ConfigProblem, match=told):
        Access(lambda: Http(listen="127.0.0.1:1", token_file=str(token)))


async def test_a_token_file_spoilt_later_is_told_to_the_log_and_to_no_stranger(
    side: Side, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "token").chmod(0o644)
    for _ in range(2):
        refused = await side.post("/v1/jobs", {"task": "work"})
        assert (refused.status_code, str(tmp_path) in refused.text) == (503, False)
    assert len([line for line in caplog.messages if "open to others (mode 644)" in line]) == 1
    (tmp_path / "token").chmod(0o600)
    assert (await side.post("/v1/jobs", {"task": "work"})).status_code == 201


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("127.0.0.1:8383", ("127.0.0.1", 8383)),
        ("[::1]:80", ("::1", 80)),
        ("::1", ("::1", None)),
        ("host", ("host", None)),
        ("host:port", ("host", None)),
        ("host:" + "9" * 5000, ("host", None)),
    ],
)
async def test_an_address_comes_apart(address: str, parts: tuple[str, int | None]) -> None:
    assert split(address) == parts


async def test_a_store_in_trouble_is_503(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: object) -> None:
        raise TryLater("the store cannot take this now", retry_after=1.0)

    monkeypatch.setattr(side.engine.store, "submit", refuse)
    refused = await side.post("/v1/jobs", {"task": "work"})
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")


async def test_what_breaks_is_told_by_a_number_only(
    side: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def break_down(*_: object, **__: object) -> None:
        raise ZeroDivisionError("with a secret in it")

    monkeypatch.setattr(side.engine.store, "read", break_down)
    broken = await side.get("/v1/jobs")
    assert broken.status_code == 500
    assert "secret" not in broken.text
    assert "trouble" in broken.json()["title"]


async def test_health_is_told_by_what_is_found(side: Side) -> None:
    assert (await side.get("/healthz")).json() == {"status": "ok"}
    assert (await side.get("/readyz")).json() == {"status": "ready"}
    side.health.ailment = "the timers were asleep"
    sick = await side.get("/healthz")
    assert (sick.status_code, sick.json()["title"]) == (503, "the timers were asleep")
    side.engine.dispatcher.close()
    assert (await side.get("/readyz")).json()["title"] == "draining"


async def test_a_body_that_is_no_json_is_refused(side: Side) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "text/plain"}
    sent = await side.client.post("/v1/jobs", content=b'{"task":"work"}', headers=headers)
    assert sent.status_code == 415
    headers["Content-Type"] = "application/json"
    for content in (b"{", b"[" * 100_000, b'"\xff"', b"null"):
        sent = await side.client.post("/v1/jobs", content=content, headers=headers)
        assert sent.status_code == 400


async def test_who_never_ends_a_request_is_let_go(
    side: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "HEAD_WITHIN", 0.05)
    host, port = split(side.address)
    for begun in (b"", b"GET /healthz HTTP/1.1\r\nHost: loc"):
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(begun)
        with contextlib.suppress(ConnectionResetError):
            assert await asyncio.wait_for(reader.read(), 20) == b""
        writer.close()


async def test_who_never_reads_an_answer_is_let_go(
    side: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "READ_WITHIN", 0.05)
    await side.post("/v1/jobs", {"task": "work", "args": {"x": "y" * 1_000_000}, "hold": True})
    host, port = split(side.address)
    with socket.socket() as idle:
        idle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        idle.connect((host, port))
        idle.sendall(b"GET /v1/jobs/1 HTTP/1.1\r\nHost: localhost\r\n\r\n" * 9)
        await soon(lambda: side.open_connections == 2, "it is waited for, beside our own")
        await soon(lambda: side.open_connections == 1, "it is let go")


async def test_connections_beyond_all_bounds_are_dropped_unheard(
    side: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MOST_OPEN", 3)
    host, port = split(side.address)
    opened = [await asyncio.open_connection(host, port) for _ in range(4)]
    with contextlib.suppress(ConnectionResetError):
        assert await asyncio.wait_for(opened[-1][0].read(), 20) == b""
    for _, writer in opened:
        writer.close()


async def test_more_connections_than_allowed_are_told_to_come_back(
    side: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, port = split(side.address)
    idle = [await asyncio.open_connection(host, port) for _ in range(server.MOST_AT_ONCE)]
    refused = await side.get("/healthz")
    assert refused.status_code == 503
    for _, writer in idle:
        writer.close()


async def test_an_address_in_use_stops_the_start_with_a_reason(side: Side) -> None:
    with pytest.raises(RedriveError, match="nothing can listen on"):
        server._bind(side.address)


async def test_an_event_of_the_daemon_is_no_job(side: Side) -> None:
    await side.engine.store.submit(say, Said("disk_low", {}))
    assert (await side.get("/v1/jobs")).json()["jobs"] == []


async def test_an_http_side_that_fails_says_so(
    side: Side, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(counter: int) -> bool:
        raise RuntimeError("no more")

    monkeypatch.setattr(side._server._server, "on_tick", fail)
    await soon(lambda: "nobody is answered over HTTP any more" in caplog.text, "it is told")
