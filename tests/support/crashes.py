"""Die at a chosen statement, the way a process dies: nothing after it happens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event

from redrived.store.database import Database
from support.statements import watching


class Killed(BaseException):
    """No `except Exception` catches it, as none catches SIGKILL."""


class Countdown:
    """Counts the places where a process could die: before each statement and each commit."""

    def __init__(self, places: int | None) -> None:
        self.passed = 0
        self._left = places

    def pass_by(self, *_: Any) -> None:
        if self._left is not None:
            if self._left == 0:
                raise Killed
            self._left -= 1
        self.passed += 1


@contextmanager
def dying_after(database: Database, places: int | None) -> Iterator[Countdown]:
    """Raise `Killed` once so many places have been passed; None only counts them."""
    countdown = Countdown(places)
    event.listen(database.writers, "commit", countdown.pass_by)
    try:
        with watching(database, countdown.pass_by):
            yield countdown
    finally:
        event.remove(database.writers, "commit", countdown.pass_by)
        database.writers.dispose()  # a dead process holds no connection
