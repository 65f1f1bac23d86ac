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


def run_group(unit: Unit, entries: Sequence[Entry[Any, Any]]) -> Landed:
    """Do everything the entries ask for, each failing alone, and write down what was said."""
    if not unit.database.is_sqlite and any(needs_turn(e.operation, e.item) for e in entries):
        unit.lock("turn")
    alone = len(entries) == 1
    for operation, group in groupby(entries, key=lambda entry: entry.operation):
        _run_together(unit, operation, list(group), alone)
    return unit.flush()


def _run_together(
    unit: Unit,
    operation: Operation[Any, Any],
    entries: list[Entry[Any, Any]],
    alone: bool,
) -> None:
    mark = unit.mark()
    savepoint = None if alone else unit.connection.begin_nested()
    try:
        answers = operation(unit, [entry.item for entry in entries])
    except Exception as error:
        if unit.database.trouble(error) is not None or savepoint is None:
            raise
        savepoint.rollback()
        unit.forget_since(mark)
        if len(entries) == 1:
            entries[0].answer = error
            return
        for entry in entries:
            _run_together(unit, operation, [entry], alone=False)
        return
    if savepoint is not None:
        savepoint.commit()
    for entry, answer in zip(entries, answers, strict=True):
        entry.answer = answer
        if entry.receipt is not None and not isinstance(answer, Exception):
            unit.carried_out(entry.receipt)
