"""Whoever gives us what cannot be written is told so."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from redrive.errors import UsageProblem


@contextmanager
def writing() -> Generator[None]:
    try:
        yield
    except (TypeError, OverflowError, UnicodeEncodeError, RecursionError) as error:
        raise UsageProblem(
            f"this cannot be sent: {error}",
            hint="arguments are what JSON can hold: text, lists, objects, numbers of 64 bits",
        ) from None
