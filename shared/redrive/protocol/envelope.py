"""What every message is, how it travels (one frame each), and how large it may be."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Raw, Struct

MAX_MESSAGE = 4 * 1024 * 1024  # bytes of a request or a reply
ROOM = MAX_MESSAGE - 256 * 1024  # bytes of it for rows; the rest is for what stands beside them
MAX_QUERY = 256 * 1024  # bytes of a request that only reads


class Request(Struct, frozen=True, kw_only=True, tag_field="type", tag=str.lower):
    """Something asked; `Reply` is what answers it."""

    Reply: ClassVar[type[Struct]]


class Reply(Struct, frozen=True, kw_only=True, tag_field="type", tag=str.lower):
    """Something answered."""


class Call(Struct, frozen=True, kw_only=True, array_like=True):
    """A request on its way. The same `id` twice does the thing once."""

    id: str
    body: Raw  # the request, so that who asked can be told even when it cannot be read
    timeout: float | None = None  # seconds after which nobody waits for the answer any more
    sent_at: int | None = None  # an instant; with it, what lay too long on the way is not done


class Refusal(Struct, frozen=True, kw_only=True, tag="refusal"):
    """Why a request was not done; `code` is for programs, the rest for people."""

    code: str
    message: str
    hint: str = ""
    retry_after: float | None = None
    exit_code: int = 1
    order: int | None = None  # of several in the request, the one it is about; from 0


class Answer(Struct, frozen=True, kw_only=True, array_like=True):
    id: str
    body: Raw  # the reply
    refusal: Refusal | None = None
