"""Look at every statement before a database gets it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, event

from redrived.store.database import Database

Note = Callable[[str, Any], None]


class Watched:
    """SQLite's connection, with somebody looking over its shoulder."""

    def __init__(self, below: Any, note: Note) -> None:
        self._below = below
        self._note = note

    def execute(self, statement: str, parameters: Any = ()) -> Any:
        self._note(statement, parameters)
        return self._below.execute(statement, parameters)


@contextmanager
def watching(database: Database, note: Note) -> Iterator[None]:
    """Tell of statements that go through SQLAlchemy, and of those that pass it by."""

    def through(_c: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        note(statement, parameters)

    past = database.driver

    def driver(connection: Connection) -> Any:
        below = past(connection)
        return None if below is None else Watched(below, note)

    engines = (database.writers, database.readers)
    for engine in engines:
        event.listen(engine, "before_cursor_execute", through)
    database.driver = driver  # type: ignore[method-assign]
    try:
        yield
    finally:
        database.driver = past  # type: ignore[method-assign]
        for engine in engines:
            event.remove(engine, "before_cursor_execute", through)
