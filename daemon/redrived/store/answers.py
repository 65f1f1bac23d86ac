"""What a statement answered: rows, or how many it changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, Protocol


class Rows(Protocol):
    """What operations ask of an answer; SQLAlchemy's results can do it, too."""

    @property
    def rowcount(self) -> int: ...
    def __iter__(self) -> Iterator[tuple[Any, ...]]: ...
    def all(self) -> Sequence[tuple[Any, ...]]: ...
    def first(self) -> tuple[Any, ...] | None: ...
    def scalar(self) -> Any: ...


class DriverRows:
    """The answer of SQLite's driver as it came: its rows are bare tuples."""

    __slots__ = ("_cursor",)

    def __init__(self, cursor: sqlite3.Cursor) -> None:
        self._cursor = cursor

    @property
    def rowcount(self) -> int:
        return self._cursor.rowcount

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self._cursor

    def all(self) -> list[tuple[Any, ...]]:
        return self._cursor.fetchall()

    def first(self) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None = self._cursor.fetchone()
        self._cursor.close()
        return row

    def scalar(self) -> Any:
        row = self.first()
        return None if row is None else row[0]
