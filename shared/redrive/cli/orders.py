"""Orders from what was typed, and from files of one JSON object a line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any, TypeVar

import msgspec
from click import BadParameter
from msgspec.structs import asdict

from redrive.cli import kinds
from redrive.errors import UsageProblem
from redrive.protocol.commands import JobOrder, RunOrder

Order = TypeVar("Order", JobOrder, RunOrder)

_KINDS: dict[str, Callable[[str], object]] = {"delay": kinds.duration, "at": kinds.time}


def given_args(args: dict[str, Any] | None, pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """`--args` with the pairs laid over it."""
    return {**(args or {}), **dict(pairs)}


def read_orders(file: IO[bytes], default: Order) -> Iterator[Order]:
    """The lines of a file, each laid over the options of the command line.

    A file is read twice, so that a bad line is found before the first order leaves; standard
    input cannot be, and is sent as it comes.
    """
    if file.seekable():
        for _ in _orders(file, default):
            pass
        file.seek(0)
    return _orders(file, default)


def _orders(file: IO[bytes], default: Order) -> Iterator[Order]:
    for number, line in enumerate(file, start=1):
        if line.isspace():
            continue
        try:
            yield _order(line, default)
        except (ValueError, RecursionError, BadParameter) as error:
            text = error.message if isinstance(error, BadParameter) else str(error)
            known = ", ".join(default.__struct_fields__)
            raise UsageProblem(
                f"line {number} of {file.name}: {text}",
                hint=f"a line is a JSON object of {known}",
            ) from None


def _order(line: bytes, default: Order) -> Order:
    options = msgspec.json.decode(line, type=dict[str, Any])
    if unknown := options.keys() - set(default.__struct_fields__):
        raise ValueError(f"unknown option {min(unknown)!r}")
    for name, kind in _KINDS.items():
        if isinstance(options.get(name), str):
            options[name] = kind(options[name])
    args = msgspec.convert(options.get("args", {}), dict[str, Any])
    return msgspec.convert(
        {**asdict(default), **options, "args": default.args | args}, type(default)
    )
