"""An HTTP task: one request as configured, its redirects, and what came of it.

Every hop goes to an address that was looked at (`addresses`), not to whatever the name
resolves to a moment later. No proxy and no credentials come from the environment, and no
cookie outlives a hop.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from redrive._version import __version__
from redrive.config.sections import HttpCall
from redrived.processes.addresses import is_link_local, is_private, resolve
from redrived.processes.http_answer import (
    Answered,
    CallRefused,
    Failed,
    TooMuch,
    UnfitHeader,
    conclude,
)
from redrived.processes.http_words import not_connected, reason_of

if TYPE_CHECKING:
    import httpx

_SILENCE = 300.0  # seconds without a byte, for calls that have no deadline
_REDIRECTS = {301, 302, 303, 307, 308}
_NOT_OF_A_HEADER = re.compile(r"[^\t -~]")
_HARMLESS_HEADERS = {"accept", "accept-language", "content-type", "user-agent"}


class Hop(Struct, frozen=True, kw_only=True):
    """One request on the way."""

    method: str
    url: httpx.URL
    headers: Mapping[str, str]
    body: bytes | None
    is_own: bool  # goes where the config points, not where an answer does

    def __str__(self) -> str:
        """Without what may be secret: user, password, query."""
        return f"{self.method} {self.url.scheme}://{self.url.netloc.decode()}{self.url.path}"


async def call(task: HttpCall, *, deadline: float | None, now: float) -> Answered | Failed:
    """Make the call; everything in it is rendered. `now` is Unix time, for Retry-After."""
    import httpx

    try:
        hop = _first_hop(task)
    except (httpx.InvalidURL, CallRefused, TypeError, ValueError) as error:
        kind = type(error) if isinstance(error, CallRefused) else CallRefused
        return Failed(
            message=f"the request cannot be made: {error}",
            exception=names_of(error),
            refused=kind.error_type,
        )
    timeout = asyncio.timeout(deadline)
    try:
        async with timeout, _client(task, deadline) as client:
            return await _follow(client, task, hop, now)
    except (httpx.HTTPError, httpx.InvalidURL, CallRefused, OSError, ValueError) as error:
        reason = reason_of(error)
        if timeout.expired():
            reason = f"no answer within {deadline:g} s"
        refused = error.error_type if isinstance(error, CallRefused) else None
        return Failed(message=f"{hop}: {reason}", exception=names_of(error), refused=refused)


async def _follow(
    client: httpx.AsyncClient, task: HttpCall, hop: Hop, now: float
) -> Answered | Failed:
    for _ in range(task.redirects + 1):
        response = await _send(client, task, hop)
        try:
            location = response.headers.get("location")
            if (
                not task.redirects
                or location is None
                or response.status_code not in _REDIRECTS
                or response.status_code in task.expect
            ):
                return await conclude(task, str(hop), response, now)
        finally:
            await response.aclose()
        hop = _next_hop(hop, response.status_code, location)
    raise TooMuch(f"more than {task.redirects} redirects; see `redirects`")


def _first_hop(task: HttpCall) -> Hop:
    import httpx

    headers = dict(task.headers)
    for name, value in headers.items():
        _check_header(name, value)
    body = None if task.body is None else task.body.encode()
    if task.json is not None:
        body = msgspec.json.encode(task.json)
        headers = {"Content-Type": "application/json", **headers}
    url = httpx.URL(task.url)
    if task.params:
        url = url.copy_merge_params(task.params)
    return Hop(method=task.method, url=url, headers=headers, body=body, is_own=True)


def _check_header(name: str, value: str) -> None:
    """Refused here, in words: one that comes from arguments is the same at each attempt."""
    if (found := _NOT_OF_A_HEADER.search(value)) is not None:
        what = f"has a {found[0]!r}, and only one line of ASCII text can be sent"
    elif value != value.strip():
        what = "begins or ends with a space"
    else:
        return
    raise UnfitHeader(f"the value of header {name} {what}")


def _next_hop(hop: Hop, status: int, location: str) -> Hop:
    url = hop.url.join(location)
    method, body = hop.method, hop.body
    if status == 303 or (status in (301, 302) and method == "POST"):
        method, body = ("HEAD" if method == "HEAD" else "GET"), None
    is_own = hop.is_own and _same_server(hop.url, url)
    headers = hop.headers
    if not is_own:  # what was meant for one server may be a secret to the next
        headers = {
            name: value for name, value in headers.items() if name.lower() in _HARMLESS_HEADERS
        }
    return Hop(method=method, url=url, headers=headers, body=body, is_own=is_own)


def _same_server(one: httpx.URL, other: httpx.URL) -> bool:
    is_upgrade = (one.scheme, other.scheme) == ("http", "https")
    ports_fit = _port(one) == _port(other) or (
        is_upgrade and (_port(one), _port(other)) == (80, 443)
    )
    schemes_fit = one.scheme == other.scheme or is_upgrade
    return one.host == other.host and ports_fit and schemes_fit


async def _send(client: httpx.AsyncClient, task: HttpCall, hop: Hop) -> httpx.Response:
    """The answer's head, from the first address that lets us connect."""
    import httpx

    if hop.url.scheme not in ("http", "https") or not hop.url.host:
        raise CallRefused(f"only http and https can be called, not {hop.url.scheme or 'nothing'}")
    refusal: httpx.TransportError | None = None
    for address in await _allowed_addresses(task, hop):
        client.cookies.clear()
        request = client.build_request(
            hop.method,
            hop.url.copy_with(host=address),
            headers={"Host": hop.url.netloc.decode(), **hop.headers},
            content=hop.body,
            extensions={"sni_hostname": hop.url.raw_host.decode()},
        )
        try:
            return await client.send(request, stream=True)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            refusal = error
    if refusal is None:
        raise httpx.ConnectError(f"{hop.url.host} has no address")
    raise type(refusal)(not_connected(refusal))


async def _allowed_addresses(task: HttpCall, hop: Hop) -> list[str]:
    addresses = await resolve(hop.url.host)
    if not task.allow_link_local and any(map(is_link_local, addresses)):
        raise CallRefused(f"{hop.url.host} is a link-local address; see `allow_link_local`")
    if not hop.is_own and not task.allow_private_redirects and any(map(is_private, addresses)):
        raise CallRefused(
            f"redirected into a private network, to {hop.url.host}; see `allow_private_redirects`"
        )
    return addresses


def _client(task: HttpCall, deadline: float | None) -> httpx.AsyncClient:
    import httpx

    return httpx.AsyncClient(
        verify=_tls(),
        trust_env=False,
        timeout=httpx.Timeout(_SILENCE if deadline is None else None, connect=task.connect_timeout),
        # Compressed, a small answer could be a large one.
        headers={"User-Agent": f"redrive/{__version__}", "Accept-Encoding": "identity"},
    )


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def _port(url: httpx.URL) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


def names_of(error: BaseException) -> tuple[str, ...]:
    """Its class and the bases of that, as rules match them."""
    kinds = type(error).__mro__[:-2]  # without BaseException and object
    return tuple(
        f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.") for kind in kinds
    )
