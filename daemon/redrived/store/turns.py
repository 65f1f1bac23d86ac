"""Whose turn it is: what several nodes change, they change one after the other.

Two nodes that each hold a row which the other wants would wait until the database notices, a
second later, and ends one of them. So a unit of work waits once, before its first row, until
no other node has its turn. None is needed for what a node does to jobs that are its own, or
that it takes from those nobody holds: that is most of the work. The numbers of the log come
last of all and are never held for long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Changing = TypeVar("Changing", bound=Callable[..., Any])

_apart: dict[Callable[..., Any], Callable[[Any], bool]] = {}


def apart(unless: Callable[[Any], bool] = lambda item: False) -> Callable[[Changing], Changing]:
    """Mark an operation that needs no turn, or only for some of its items."""

    def mark(operation: Changing) -> Changing:
        _apart[operation] = unless
        return operation

    return mark


def needs_turn(operation: Callable[..., Any], item: Any) -> bool:
    unless = _apart.get(operation)
    return unless is None or unless(item)
