"""What an HTTP call came to: a result for the job, or evidence of why there is none.

Bodies are read as they come, and no further than the config allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from redrive.config.sections import HttpCall
from redrive.models import Json
from redrive.nesting import MOST, is_deep

if TYPE_CHECKING:
    import httpx

_LARGEST_RESULT = 64 * 1024
_EXCERPT = 500  # characters of a refusal's body that are shown
_KEPT_HEADERS = ("content-type", "date", "etag", "last-modified", "location")
_LONGEST_HEADER = 4096  # characters; all of them leave most of the result to the body


class Answered(Struct, frozen=True, kw_only=True):
    """What was expected; the result of the job."""

    status: int
    headers: dict[str, str]
    json: Json = None
    text: str | None = None  # what is no JSON, or too long to be kept whole
    is_cut: bool = False

    @property
    def note(self) -> str | None:
        """What of the answer is not in the result, though somebody may look for it there."""
        if self.is_cut:
            return f"the result is cut: a result has at most {_LARGEST_RESULT} bytes, as JSON"
        if self.text and _is_json(self.headers):
            return f"kept as text: it is no JSON, too long, or nested more than {MOST} levels deep"
        return None


class Failed(Struct, frozen=True, kw_only=True):
    """Evidence of a call that did not get what it expected."""

    message: str
    status: int | None = None
    retry_after: float | None = None  # seconds
    exception: tuple[str, ...] = ()  # with their modules, the raised class first, then its bases
    refused: str | None = None  # by us; the type of the error: trying again would not help


class CallRefused(Exception):
    """The request, a redirect or the answer goes beyond what the config allows."""

    error_type = "config_error"


class TooMuch(CallRefused):
    """More than a limit of the config."""

    error_type = "limit_exceeded"


class UnfitHeader(CallRefused):
    """A value that no header can have."""

    error_type = "validation_error"


async def conclude(
    task: HttpCall, asked: str, response: httpx.Response, now: float
) -> Answered | Failed:
    """Read the answer. `asked` says to whom the request went; `now` is Unix time."""
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > task.max_response:
            break
    status = response.status_code
    if status in task.expect or (not task.expect and response.is_success):
        if len(body) > task.max_response:
            raise TooMuch(f"more than {task.max_response} bytes; see `max_response`")
        return _answer(response, bytes(body))
    excerpt = body[: 4 * _EXCERPT].decode(errors="replace")[:_EXCERPT].strip()
    answered = f"{status} {response.reason_phrase}".strip()
    if task.expect:
        answered += f", expected {' or '.join(map(str, task.expect))}"
    return Failed(
        message=f"{asked} answered {answered}: {excerpt}".rstrip(": "),
        status=status,
        retry_after=_retry_after(response.headers.get("retry-after"), now),
    )


def _answer(response: httpx.Response, body: bytes) -> Answered:
    headers = {
        name: value
        for name in _KEPT_HEADERS
        if (value := response.headers.get(name)) is not None and len(value) <= _LONGEST_HEADER
    }
    answer = Answered(status=response.status_code, headers=headers)
    if len(body) <= _LARGEST_RESULT and _is_json(headers):
        try:
            found = msgspec.json.decode(body)
            whole = replace(answer, json=found)
            if not is_deep(found) and _fits(whole):
                return whole
        except (msgspec.MsgspecError, RecursionError):
            pass  # it is text, then
    text = _text(body[:_LARGEST_RESULT], response.encoding or "utf-8")
    answer = replace(answer, text=text, is_cut=len(body) > _LARGEST_RESULT)
    while not _fits(answer):
        text = text[: len(text) // 2]
        answer = replace(answer, text=text, is_cut=True)
    return answer


def _fits(answer: Answered) -> bool:
    return len(msgspec.json.encode(answer)) <= _LARGEST_RESULT


def _is_json(headers: Mapping[str, str]) -> bool:
    return "json" in headers.get("content-type", "")


def _text(body: bytes, encoding: str) -> str:
    try:
        text = body.decode(encoding, errors="replace")
        return text.encode(errors="replace").decode()  # of UTF-7, say, half a character may come
    except (LookupError, ValueError):  # the other side's word for it: "hex" is known, but no text
        return body.decode(errors="replace")


def _retry_after(value: str | None, now: float) -> float | None:
    if value is None:
        return None
    if value.isdecimal():
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    return max(0.0, moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - now)
