"""Orders from what was typed, and from files of one JSON object a line."""

from __future__ import annotations

from array import array
from codecs import BOM_UTF8
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any, Generic, TypeVar

import msgspec
from click import BadParameter
from msgspec.structs import asdict

from redrive.cli import kinds
from redrive.errors import RedriveError, UsageProblem
from redrive.orders import check_values, check_words, checked_args
from redrive.protocol.commands import JobOrder, RunOrder

Order = TypeVar("Order", JobOrder, RunOrder)

_KINDS: dict[str, Callable[[str], object]] = {"delay": kinds.duration, "at": kinds.time}


def given_args(args: dict[str, Any] | None, pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """`--args` with the pairs laid over it."""
    return {**(args or {}), **dict(pairs)}


class OrderFile(Generic[Order]):
    """The lines of a file, each laid over the options of the command line.

    A file is read twice, so that a bad line is found before the first order leaves; standard
    input cannot be, and is sent as it comes.
    """

    def __init__(self, file: IO[bytes], default: Order) -> None:
        self._file = file
        self._default: Order = default
        self._lines = array("Q")  # those of the orders that have been read to be sent
        if file.seekable():
            for _ in self._read():
                pass
            file.seek(0)

    def __iter__(self) -> Iterator[Order]:
        for number, order in self._read():
            self._lines.append(number)
            yield order

    @contextmanager
    def naming_lines(self) -> Generator[None]:
        """Have refusals of single orders say on which line they are."""
        try:
            yield
        except RedriveError as error:
            if error.order is not None:
                error.message = f"{self._place(self._lines[error.order])}: {error.message}"
            raise

    def _read(self) -> Iterator[tuple[int, Order]]:
        for number, line in enumerate(self._file, start=1):
            text = line.removeprefix(BOM_UTF8) if number == 1 else line
            if not text.strip():
                continue
            try:
                order = _order(text, self._default)
            except RedriveError as error:
                error.message = f"{self._place(number)}: {error.message}"
                raise
            except (ValueError, RecursionError, BadParameter) as error:
                said = error.message if isinstance(error, BadParameter) else str(error)
                known = ", ".join(self._default.__struct_fields__)
                raise UsageProblem(
                    f"{self._place(number)}: {said}", hint=f"a line is a JSON object of {known}"
                ) from None
            yield number, order

    def _place(self, line: int) -> str:
        return f"line {line} of {self._file.name}"


def _order(line: bytes, default: Order) -> Order:
    options = msgspec.json.decode(line, type=dict[str, Any])
    if unknown := options.keys() - set(default.__struct_fields__):
        raise ValueError(f"unknown option {min(unknown)!r}")
    for name, kind in _KINDS.items():
        if isinstance(options.get(name), str):
            options[name] = kind(options[name])
    args = msgspec.convert(options.get("args", {}), dict[str, Any])
    order = msgspec.convert(
        {**asdict(default), **options, "args": default.args | args}, type(default)
    )
    _check(order)
    return order


def _check(order: JobOrder | RunOrder) -> None:
    """Refuse what every daemon would, while nothing has been sent."""
    if isinstance(order, JobOrder):
        check_values(order)
    else:
        check_words(("key", order.key), ("batch", order.batch))
        checked_args(order.args)
