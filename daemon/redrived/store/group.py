"""A group: what is done in one commit, each operation of it failing alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Generic, TypeVar, cast

from redrive.errors import RedriveError
from redrived.store.receipts import Receipt
from redrived.store.turns import needs_turn
from redrived.store.unit import Landed, Unit

Item = TypeVar("Item")
Result = TypeVar("Result")

# A set-based change: all items of one kind in a group at once, an answer for each of them. An
# answer that is an exception is raised where the item came from.
Operation = Callable[[Unit, Sequence[Item]], Sequence[Result | RedriveError]]


class Entry(Generic[Item, Result]):
    """One item on its way to the store, and where its answer goes."""

    __slots__ = ("answer", "future", "item", "must_land", "operation", "receipt", "since")

    def __init__(
        self,
        operation: Operation[Item, Result],
        item: Item,
        future: asyncio.Future[Result] | None,
        must_land: bool,
    ) -> None:
        self.operation = operation
        self.item = item
        self.future = future
        self.must_land = must_land
        self.receipt: Receipt | None = None
        self.since = time.monotonic()
        self.answer: Result | BaseException | None = None

    def tell(self) -> None:
        """Give the answer to whoever still waits for it; in the loop."""
        if self.future is None or self.future.done():
            return
        if isinstance(self.answer, BaseException):
            self.future.set_exception(self.answer)
        else:
            self.future.set_result(cast("Result", self.answer))


class GroupFailed(Exception):
    """An operation of the group raised; done again with care, only that one fails."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def run_group(
    unit: Unit,
    entries: list[Entry[Any, Any]],
    standing: Callable[[], Entry[Any, Any] | None] = lambda: None,
) -> Landed:
    """Do everything the entries ask for, and write down what was said.

    When that makes something ready, what stands for this joins them and is done last.

    In a careful unit each operation fails alone, for which it needs a savepoint. Failing is so
    rare that nobody pays for one until it has happened.
    """
    if not unit.database.is_sqlite and any(needs_turn(e.operation, e.item) for e in entries):
        unit.lock("turn")
    run = _run_carefully if unit.careful else _run
    for operation, group in groupby(entries, key=lambda entry: entry.operation):
        run(unit, operation, list(group))
    if unit.has_made_ready and (joins := standing()) is not None:
        entries.append(joins)
        run(unit, joins.operation, [joins])
        # Nobody else need be woken for what has been looked at here.
        unit.has_made_ready = isinstance(joins.answer, BaseException)
    return unit.flush()


def _run(unit: Unit, operation: Operation[Any, Any], entries: Sequence[Entry[Any, Any]]) -> None:
    try:
        answers = operation(unit, [entry.item for entry in entries])
    except Exception as error:
        if unit.database.trouble(error) is not None:
            raise
        raise GroupFailed(error) from error
    _note(unit, entries, answers)


def _run_carefully(
    unit: Unit, operation: Operation[Any, Any], entries: Sequence[Entry[Any, Any]]
) -> None:
    mark = unit.mark()
    savepoint = unit.connection.begin_nested()
    try:
        answers = operation(unit, [entry.item for entry in entries])
    except Exception as error:
        if unit.database.trouble(error) is not None:
            raise
        savepoint.rollback()
        unit.forget_since(mark)
        if len(entries) == 1:
            entries[0].answer = error
            return
        for entry in entries:
            _run_carefully(unit, operation, [entry])
        return
    savepoint.commit()
    _note(unit, entries, answers)


def _note(unit: Unit, entries: Sequence[Entry[Any, Any]], answers: Sequence[Any]) -> None:
    for entry, answer in zip(entries, answers, strict=True):
        entry.answer = answer
        if entry.receipt is not None and not isinstance(answer, Exception):
            unit.carried_out(entry.receipt)
