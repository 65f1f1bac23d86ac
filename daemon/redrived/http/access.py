"""Who may do what over HTTP: which Host is meant, and who has the token.

Changes always need the token of `token_file`; so does everything when the listener can be
reached from other machines. A page in somebody's browser gets nowhere: its Host is not ours.
"""

from __future__ import annotations

import hmac
import ipaddress
import logging
from collections.abc import Callable
from typing import Literal

from starlette.requests import Request

from redrive.config.sections import Http
from redrive.errors import ConfigProblem
from redrive.token_file import read_token
from redrived.http.problems import HttpProblem

Need = Literal["nothing", "read", "change"]

_LOCAL = ("localhost", "127.0.0.1", "::1")

log = logging.getLogger(__name__)


class Unauthorized(HttpProblem):
    code = "unauthorized"


class Access:
    def __init__(self, settings: Callable[[], Http]) -> None:
        self._settings = settings
        self._trouble = ""  # with the token, as last told
        self.token()  # so that a bad file stops the start, not the first request

    def check(self, request: Request, need: Need) -> None:
        """Raises what forbids it."""
        http = self._settings()
        host, _ = split(http.listen)
        self._check_host(request, host, http.hosts)
        if need == "nothing" or (need == "read" and is_loopback(host)):
            return
        token = self._token_now()
        if token is None:
            raise HttpProblem(
                403,
                "this listener only reads",
                hint="set `token_file` in [http], and send its content as a bearer token",
            )
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        # Compared as bytes: a token that is no ASCII must be a refusal, not an error.
        if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), token):
            raise Unauthorized(401, "this needs the token", hint="send `Authorization: Bearer …`")

    def _token_now(self) -> bytes | None:
        """A file that has been spoilt since the start is our trouble, and told to the log."""
        try:
            token = self.token()
        except ConfigProblem as problem:
            if problem.message != self._trouble:
                log.error("no token is accepted: %s; %s", problem.message, problem.hint)
            self._trouble = problem.message
            raise HttpProblem(
                503, "the token cannot be checked now", hint="the log of the daemon says why"
            ) from problem
        self._trouble = ""
        return token

    def token(self) -> bytes | None:
        """Read anew each time, so that it can be changed without a restart."""
        file = self._settings().token_file
        return None if file is None else read_token(file)

    def _check_host(self, request: Request, own: str, others: list[str]) -> None:
        given = request.headers.get("host", "")
        name = split(given)[0].lower() if given else ""
        known = {own, *(other.lower() for other in others)}
        if is_loopback(own):
            known |= set(_LOCAL)
        if name not in known:
            raise HttpProblem(
                421, "this is not the host you asked for", hint="`hosts` in [http] names others"
            )


def split(address: str) -> tuple[str, int | None]:
    """Host, without brackets, and port of `HOST:PORT`, `[HOST]:PORT` or `HOST`."""
    if address.startswith("["):
        host, _, rest = address[1:].partition("]")
        port = rest.removeprefix(":")
    elif address.count(":") == 1:
        host, port = address.split(":")
    else:
        host, port = address, ""
    return host, int(port) if port.isascii() and port.isdecimal() and len(port) < 6 else None


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
