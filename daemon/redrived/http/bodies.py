"""Reading what was sent, and writing what is answered: JSON, within bounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from redrive.errors import UsageProblem
from redrive.models import plain
from redrived.http.problems import HttpProblem

LARGEST = 1024 * 1024 + 64 * 1024  # bytes: the arguments of a job, and what is around them

Body = TypeVar("Body", bound=Struct)


async def read(request: Request, kind: type[Body]) -> Body:
    """The body as a record; an empty one when none was sent and nothing is needed."""
    check_parameters(request, (), hint="what this takes is sent in the body")
    content = await _bytes(request)
    if content:
        sent_as = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if sent_as != "application/json":
            raise HttpProblem(415, "a body is sent as application/json")
    try:
        return msgspec.json.decode(content or b"{}", type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise UsageProblem(f"the body does not fit: {error}"[:500]) from error


async def _bytes(request: Request) -> bytes:
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > LARGEST:
        raise _too_large()
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > LARGEST:
            raise _too_large()
    return bytes(content)


def _too_large() -> HttpProblem:
    return HttpProblem(413, f"a body has {LARGEST:,} bytes at most")


def check_parameters(request: Request, known: Collection[str], *, hint: str) -> None:
    """Refuse in the query what nobody would heed, and what is said twice."""
    for name, times in Counter(name for name, _ in request.query_params.multi_items()).items():
        if name not in known:
            raise UsageProblem(f"there is no parameter {name[:40]!r}", hint=hint)
        if times > 1:
            raise UsageProblem(f"{name} was given {times} times", hint="give it once")


def number(request: Request, name: str, default: int, most: int) -> int:
    """A whole number of the query, from 1 on."""
    given = request.query_params.get(name)
    if given is None:
        return default
    if not (given.isascii() and given.isdecimal() and 1 <= int(given[:10]) <= most):
        raise UsageProblem(f"{name}={given[:40]!r} cannot be used", hint=f"1 to {most}")
    return int(given)


def answer(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    body = plain(content) if isinstance(content, Struct) else content
    return Response(msgspec.json.encode(body), status, headers, media_type="application/json")
