"""Bytes to structs and back; nothing is decoded before its size is known to be sane."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from redrive.errors import UsageProblem
from redrive.protocol.commands import Command
from redrive.protocol.envelope import Answer, Call, Refusal, Request
from redrive.protocol.queries import Query

Message = TypeVar("Message", bound=Struct)
Decoded = TypeVar("Decoded")
Row = TypeVar("Row", bound=Struct)

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
    return encode(Answer(id=id, body=msgspec.Raw(encode_told(reply))))


def encode_told(message: Struct) -> bytes:
    """What a daemon tells. A number too large for a message goes as text: it is in some job's
    arguments or result, which JSON can hold, and must not hide all that is told beside it.
    """
    try:
        return encode(message)
    except OverflowError:
        return encode(_spelled_out(msgspec.to_builtins(message, builtin_types=(bytes,))))


def that_fit(rows: Iterable[Row], room: int) -> Iterator[Row]:
    """As many of these, from the first on, as a reply has room for; one at least."""
    for n, row in enumerate(rows):
        room -= len(encode_told(row))
        if room < 0 and n:
            return
        yield row


def _spelled_out(value: Any) -> Any:
    match value:
        case {**entries}:
            return {key: _spelled_out(each) for key, each in entries.items()}
        case [*items]:
            return [_spelled_out(each) for each in items]
        case int() if not -(2**63) <= value < 2**64:
            return str(value)
        case _:
            return value


def decode_answer(data: bytes) -> Answer:
    return _readable(_answers, data)


def decode_as(kind: type[Message], data: bytes | msgspec.Raw) -> Message:
    decoder: msgspec.msgpack.Decoder[Message] = _decoder_of(kind)
    return _readable(decoder, data)


@lru_cache(maxsize=256)
def _decoder_of(kind: type[Struct]) -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(kind)


def _readable(decoder: msgspec.msgpack.Decoder[Decoded], data: bytes | msgspec.Raw) -> Decoded:
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise UsageProblem(
            f"the message cannot be read: {error}",
            hint="`redrive --version` on both sides should agree",
        ) from None
