"""Bytes to structs and back; nothing is decoded before its size is known to be sane."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from redrive.errors import UsageProblem
from redrive.protocol.commands import Command
from redrive.protocol.envelope import Answer, Call, Refusal
from redrive.protocol.queries import Query, Request

Message = TypeVar("Message", bound=Struct)
Decoded = TypeVar("Decoded")

_encoder = msgspec.msgpack.Encoder()
_calls = msgspec.msgpack.Decoder(Call)
_answers = msgspec.msgpack.Decoder(Answer)
_queries: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(Query)
_commands: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(Command)

encode = _encoder.encode


def encode_call(
    id: str, request: Request, timeout: float | None = None, sent_at: int | None = None
) -> bytes:
    body = msgspec.Raw(encode(request))
    return encode(Call(id=id, body=body, timeout=timeout, sent_at=sent_at))


def decode_call(data: bytes) -> Call:
    return _readable(_calls, data)


def decode_query(call: Call) -> Request:
    request: Request = _readable(_queries, call.body)
    return request


def decode_command(call: Call) -> Request:
    request: Request = _readable(_commands, call.body)
    return request


def encode_answer(id: str, reply: Struct | Refusal) -> bytes:
    if isinstance(reply, Refusal):
        return encode(Answer(id=id, body=msgspec.Raw(b"\xc0"), refusal=reply))
    return encode(Answer(id=id, body=msgspec.Raw(encode(reply))))


def decode_answer(data: bytes) -> Answer:
    return _readable(_answers, data)


def decode_as(kind: type[Message], data: bytes | msgspec.Raw) -> Message:
    return _readable(msgspec.msgpack.Decoder(kind), data)


def _readable(decoder: msgspec.msgpack.Decoder[Decoded], data: bytes | msgspec.Raw) -> Decoded:
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise UsageProblem(
            f"the message cannot be read: {error}",
            hint="`redrive --version` on both sides should agree",
        ) from None
