"""Whoever gives us what cannot be written is told so."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from redrive.errors import UsageProblem


@contextmanager
def writing(message: Struct | None = None) -> Generator[None]:
    try:
        yield
    except (TypeError, OverflowError, UnicodeEncodeError, RecursionError) as error:
        # The error names no argument, and knows a limit that is not the one of arguments.
        if isinstance(error, OverflowError) and (found := next(_too_large(message), None)):
            name, number = found
            raise UsageProblem(
                f"this cannot be sent: argument {name} is a number of more than 64 bits",
                hint=f"pass it as text, which has quotes: '\"{number}\"' in a shell",
            ) from None
        raise UsageProblem(
            f"this cannot be sent: {error}",
            hint="arguments are what JSON can hold: text, lists, objects, numbers of 64 bits",
        ) from None


def _too_large(value: Any, name: str = "") -> Iterator[tuple[str, int]]:
    """The numbers in it that no message holds, by their names: those inside of objects, as the
    fields of a message are no arguments.
    """
    match value:
        case Struct():
            for field in value.__struct_fields__:
                yield from _too_large(getattr(value, field))
        case {**entries}:
            for key, each in entries.items():
                yield from _too_large(each, f"{name}.{key}" if name else str(key))
        case [*items]:
            for at, each in enumerate(items):
                yield from _too_large(each, f"{name}[{at}]" if name else "")
        case int() if name and not -(2**63) <= value < 2**64:
            yield name, value
        case _:
            pass
