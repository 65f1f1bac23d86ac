"""HTTP tasks against a real server: what is asked, how far it is followed, what is told."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.utils import formatdate
from typing import Any

import msgspec
import pytest

from redrive.config.sections import HttpCall
from redrive.rules import Evidence, Rulebook
from redrived.processes.http_answer import Answered, Failed
from redrived.processes.http_call import call

NOW = 1_790_000_000.0


class Server:
    """Answers every request with what the test has laid ready for its path."""

    def __init__(self) -> None:
        self.answers: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.endless: set[str] = set()
        self.port = 0

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def lay(self, path: str, status: str, *headers: str, body: str = "") -> None:
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body.encode())}", *headers]
        self.answers[path] = "\r\n".join([*lines, "", body]).encode()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next(
            (int(line[16:]) for line in head.lower().splitlines() if "content-length:" in line), 0
        )
        self.requests.append(head + (await reader.readexactly(length)).decode())
        path = head.split()[1]
        writer.write(self.answers.get(path.partition("?")[0], b""))
        try:
            while path in self.endless or path == "/silent":
                if path in self.endless:
                    writer.write(b"x" * 65536)
                    await writer.drain()
                else:
                    await reader.read()
                    break
        except ConnectionError:
            pass
        writer.close()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as server:
        yield server


@asynccontextmanager
async def serving() -> AsyncIterator[Server]:
    server = Server()
    async with await asyncio.start_server(server.serve, "127.0.0.1") as listening:
        server.port = listening.sockets[0].getsockname()[1]
        yield server


async def failure(task: HttpCall, deadline: float | None = 20.0) -> Failed:
    outcome = await call(task, deadline=deadline, now=NOW)
    assert isinstance(outcome, Failed), outcome
    return outcome


async def answer(task: HttpCall) -> Answered:
    outcome = await call(task, deadline=20.0, now=NOW)
    assert isinstance(outcome, Answered), outcome
    return outcome


async def test_the_request_is_the_configured_one(server: Server) -> None:
    server.lay("/orders", "201 Created", "Content-Type: application/json", body='{"id": 4}')
    outcome = await answer(
        HttpCall(
            method="POST",
            url=server.url("/orders", "localhost"),
            headers={"Authorization": "Bearer t"},
            params={"dry": "no"},
            json={"name": "ä"},
        )
    )
    assert (outcome.status, outcome.json, outcome.text) == (201, {"id": 4}, None)
    assert outcome.headers == {"content-type": "application/json"}
    head, _, body = server.requests[0].partition("\r\n\r\n")
    lines = head.lower().splitlines()
    assert lines[0] == "post /orders?dry=no http/1.1"
    assert {f"host: localhost:{server.port}", "authorization: bearer t"} < set(lines)
    assert "content-type: application/json" in lines
    assert msgspec.json.decode(body) == {"name": "ä"}


async def test_no_proxy_and_no_password_comes_from_the_environment(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    server.lay("/", "200 OK", body="direct")
    assert (await answer(HttpCall(url=server.url()))).text == "direct"


@pytest.mark.parametrize(
    ("status", "expect", "is_expected"),
    [
        ("204 No Content", [], True),
        ("404 Not Found", [], False),
        ("404 Not Found", [200, 404], True),
        ("200 OK", [202], False),
        ("302 Found", [], False),
    ],
)
async def test_the_expected_statuses_are_success(
    server: Server, status: str, expect: list[int], is_expected: bool
) -> None:
    server.lay("/", status)
    outcome = await call(HttpCall(url=server.url(), expect=expect), deadline=20, now=NOW)
    assert isinstance(outcome, Answered) == is_expected
    assert outcome.status == int(status[:3])


async def test_a_status_that_was_not_expected_is_told_with_those_that_were(server: Server) -> None:
    server.lay("/", "200 OK", body="here it is")
    outcome = await failure(HttpCall(url=server.url(), expect=[404, 302]))
    assert outcome.message == (
        f"GET {server.url()} answered 200 OK, expected 404 or 302: here it is"
    )


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("one\ntwo", "has a '\\n', and only one line of ASCII text can be sent"),
        ("one\0two", "has a '\\x00', and only one line of ASCII text can be sent"),
        ("žluť", "has a 'ž', and only one line of ASCII text can be sent"),
        (" one", "begins or ends with a space"),
    ],
)
async def test_a_header_that_cannot_be_sent_is_refused_by_its_name(
    server: Server, value: str, why: str
) -> None:
    outcome = await failure(HttpCall(url=server.url(), headers={"X-Customer": value}))
    assert outcome.refused == "validation_error"
    assert outcome.message == (f"the request cannot be made: the value of header X-Customer {why}")
    assert server.requests == []


async def test_a_refusal_is_told_with_its_words_but_not_with_our_secrets(server: Server) -> None:
    server.lay("/pay", "503 Service Unavailable", body="try later")
    url = server.url("/pay?token=secret").replace("//", "//user:secret@")
    outcome = await failure(HttpCall(url=url))
    assert outcome.status == 503
    assert outcome.message == (
        f"GET {server.url('/pay')} answered 503 Service Unavailable: try later"
    )


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120.0),
        (formatdate(NOW + 90, usegmt=True), 90.0),
        (formatdate(NOW - 90, usegmt=True), 0.0),
        ("soon", None),
        ("-5", None),
        ("Fri, 99999999999 Nov 1994 08:49:37 GMT", None),
    ],
)
async def test_retry_after_is_seconds_or_a_date(
    server: Server, value: str, seconds: float | None
) -> None:
    server.lay("/", "429 Too Many Requests", f"Retry-After: {value}")
    assert (await failure(HttpCall(url=server.url()))).retry_after == seconds


async def test_a_server_that_never_answers_meets_the_deadline(server: Server) -> None:
    threads = threading.active_count()
    outcome = await failure(HttpCall(url=server.url("/silent")), deadline=0.1)
    assert outcome.message == f"GET {server.url('/silent')}: no answer within 0.1 s"
    assert "TimeoutError" in outcome.exception
    assert threading.active_count() <= threads + 4


async def test_a_body_without_end_is_read_no_further_than_allowed(server: Server) -> None:
    server.answers["/flood"] = b"HTTP/1.1 200 OK\r\n\r\n"
    server.endless.add("/flood")
    outcome = await failure(HttpCall(url=server.url("/flood"), max_response=100_000))
    assert "more than 100000 bytes; see `max_response`" in outcome.message
    assert outcome.refused == "limit_exceeded"


async def test_a_refusal_with_an_endless_body_is_still_that_refusal(server: Server) -> None:
    server.answers["/flood"] = b"HTTP/1.1 500 Oops\r\n\r\n"
    server.endless.add("/flood")
    assert (await failure(HttpCall(url=server.url("/flood")))).status == 500


async def test_a_result_is_kept_up_to_its_limit(server: Server) -> None:
    server.lay("/", "200 OK", "Content-Type: application/json", body=f'"{"x" * 100_000}"')
    outcome = await answer(HttpCall(url=server.url()))
    assert outcome.is_cut
    assert outcome.json is None
    assert 30_000 < len(msgspec.json.encode(outcome)) <= 65536
    assert outcome.note == "the result is cut: a result has at most 65536 bytes, as JSON"


async def test_a_header_that_is_very_long_is_not_kept(server: Server) -> None:
    server.lay("/", "200 OK", f"ETag: {'e' * 90_000}", "Location: /there", body="here")
    outcome = await answer(HttpCall(url=server.url()))
    assert (outcome.text, outcome.headers, outcome.is_cut) == (
        "here",
        {"location": "/there"},
        False,
    )


@pytest.mark.parametrize("body", [f'"{"x" * 65_500}"', f"[{','.join(['1e15'] * 12_000)}]"])
async def test_json_that_makes_a_result_too_long_is_text(server: Server, body: str) -> None:
    server.lay("/", "200 OK", "Content-Type: application/json", body=body)
    outcome = await answer(HttpCall(url=server.url()))
    assert outcome.json is None
    assert outcome.text is not None
    assert body.startswith(outcome.text)
    assert outcome.note is not None


async def test_a_charset_that_makes_no_text_costs_its_characters(server: Server) -> None:
    server.lay("/", "200 OK", "Content-Type: text/plain; charset=utf-7", body="+2AA-x")
    assert (await answer(HttpCall(url=server.url()))).text == "?x"


async def test_what_calls_itself_json_and_is_not_is_text(server: Server) -> None:
    server.lay("/", "200 OK", "Content-Type: application/json", body="<html>")
    outcome = await answer(HttpCall(url=server.url()))
    assert outcome.text == "<html>"
    assert (
        outcome.note == "kept as text: it is no JSON, too long, or nested more than 100 levels deep"
    )


@pytest.mark.parametrize(
    ("kind", "body"), [("text/html", "<html>"), ("text/json", "{}"), ("text/json", "")]
)
async def test_of_a_result_that_is_whole_there_is_nothing_to_tell(
    server: Server, kind: str, body: str
) -> None:
    server.lay("/", "200 OK", f"Content-Type: {kind}", "X-Request-Id: 7", body=body)
    outcome = await answer(HttpCall(url=server.url()))
    assert outcome.note is None
    assert outcome.headers == {"content-type": kind}


async def test_redirects_on_the_configured_server_are_followed(server: Server) -> None:
    server.lay("/", "303 See Other", "Location: /there", "Set-Cookie: session=1")
    server.lay("/there", "200 OK", body="here")
    task = HttpCall(
        url=server.url(), method="POST", body="x", headers={"Authorization": "Bearer t"}
    )
    assert (await answer(task)).text == "here"
    assert server.requests[1].startswith("GET /there ")
    assert "Bearer t" in server.requests[1]
    assert "session=1" not in server.requests[1]


async def test_a_loop_of_redirects_ends(server: Server) -> None:
    server.lay("/", "302 Found", "Location: /")
    outcome = await failure(HttpCall(url=server.url(), redirects=3))
    assert "more than 3 redirects" in outcome.message
    assert outcome.refused == "limit_exceeded"
    assert len(server.requests) == 4


async def test_without_redirects_the_redirect_is_the_answer(server: Server) -> None:
    server.lay("/", "302 Found", "Location: /there")
    assert (await failure(HttpCall(url=server.url(), redirects=0))).status == 302


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433"])
async def test_a_redirect_into_our_own_network_is_refused(server: Server, host: str) -> None:
    async with serving() as inside:
        inside.lay("/", "200 OK", body="internal")
        server.lay("/", "302 Found", f"Location: {inside.url('/', host)}")
        outcome = await failure(HttpCall(url=server.url()))
        assert "redirected into a private network" in outcome.message
        assert inside.requests == []


async def test_an_allowed_redirect_takes_no_secrets_along(server: Server) -> None:
    async with serving() as inside:
        inside.lay("/", "200 OK", body="internal")
        server.lay("/", "307 Temporary Redirect", f"Location: {inside.url()}")
        task = HttpCall(
            url=server.url(), headers={"X-Api-Key": "secret"}, allow_private_redirects=True
        )
        assert (await answer(task)).text == "internal"
        assert "secret" not in inside.requests[0]


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data",
        "http://[fe80::1]/",
        "http://[::ffff:169.254.169.254]/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://2852039166/",
    ],
)
async def test_link_local_addresses_are_refused(url: str) -> None:
    outcome = await failure(HttpCall(url=url, allow_private_redirects=True))
    assert "link-local" in outcome.message
    assert outcome.refused == "config_error"


async def test_a_name_that_resolves_to_a_link_local_address_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def getaddrinfo(*_: Any, **__: Any) -> list[Any]:
        return [(2, 1, 6, "", ("93.184.216.34", 80)), (2, 1, 6, "", ("169.254.169.254", 80))]

    monkeypatch.setattr("socket.getaddrinfo", getaddrinfo)
    outcome = await failure(HttpCall(url="http://metadata.example/"))
    assert "metadata.example is a link-local address" in outcome.message


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://localhost/", "localhost", "http://", "http://[::1", "/x"]
)
async def test_only_http_is_called(url: str) -> None:
    outcome = await failure(HttpCall(url=url))
    assert outcome.status is None
    assert "only http and https" in outcome.message or "cannot be made" in outcome.message
    assert outcome.refused == "config_error"


async def test_a_redirect_to_a_file_is_refused(server: Server) -> None:
    server.lay("/", "302 Found", "Location: file:///etc/passwd")
    assert "only http and https" in (await failure(HttpCall(url=server.url()))).message


@pytest.mark.parametrize(
    ("url", "exception"),
    [
        ("http://127.0.0.1:1/", "httpx.ConnectError"),
        ("http://no-such-host.invalid/", "socket.gaierror"),
    ],
)
async def test_who_cannot_be_reached_is_told_by_exception(url: str, exception: str) -> None:
    outcome = await failure(HttpCall(url=url))
    assert outcome.exception[0] == exception
    assert outcome.exception[-1] == "Exception"
    assert outcome.message.startswith(f"GET {url}: ")


async def test_who_refuses_the_connection_is_told_by_address() -> None:
    outcome = await failure(HttpCall(url="http://localhost:1/"))
    assert outcome.message in (
        "GET http://localhost:1/: connection refused: 127.0.0.1:1",
        "GET http://localhost:1/: connection refused: [::1]:1",
    )


@pytest.mark.parametrize(
    ("scheme", "how", "why"),
    [
        ("http", "resets", "connection reset by peer"),
        ("http", "closes", "Server disconnected without sending a response."),
        ("https", "resets", "connection reset by peer: 127.0.0.1:{port}"),
        ("https", "closes", "EOF occurred in violation of protocol"),
        ("https", "answers", "wrong version number"),
    ],
)
async def test_what_broke_the_connection_is_told_and_tried_again(
    scheme: str, how: str, why: str
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        if how == "resets":
            linger = struct.pack("ii", 1, 0)
            connection = writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()
        elif how == "answers":
            writer.write(b"HTTP/1.0 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1") as server:
        port = server.sockets[0].getsockname()[1]
        outcome = await failure(HttpCall(url=f"{scheme}://127.0.0.1:{port}/"))
    assert why.format(port=port) in outcome.message
    evidence = Evidence(message=outcome.message, exception=outcome.exception)
    assert Rulebook().classify(evidence).error_type == "connection_error"


async def test_a_host_is_reached_by_any_of_its_addresses(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.lay("/", "200 OK", body="reached")

    async def two_addresses(host: str) -> list[str]:
        return ["127.0.0.2", "127.0.0.1"]

    monkeypatch.setattr("redrived.processes.http_call.resolve", two_addresses)
    assert (await answer(HttpCall(url=server.url("/", "somewhere")))).text == "reached"
    assert f"Host: somewhere:{server.port}" in server.requests[0]
