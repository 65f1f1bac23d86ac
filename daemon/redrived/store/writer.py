"""The one writer: group commit.

What arrives while a commit is under way becomes the next commit, and nobody is told anything
before it is on disk. Each operation of a group fails alone; trouble of the database ends the
whole unit of work, because after "disk full" SQLite has already rolled back and would commit
the next statement by itself. What then becomes of the group depends on the trouble:

| trouble | the work in the group |
|---|---|
| busy, gone | all of it again, after a growing pause; what may not wait that long is refused |
| full, read only | what must land (ends of attempts) is kept and tried again each second, the rest is refused |
| io, corrupt | the writer stops; the daemon goes down and says so |
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection

from redrive.clock import Clock
from redrive.errors import RedriveError, TryLater
from redrived.store.database import Database, Trouble
from redrived.store.unit import Landed, Unit

log = logging.getLogger(__name__)

Item = TypeVar("Item")
Result = TypeVar("Result")

# A set-based change: all items of one kind in a group at once, an answer for each of them. An
# answer that is an exception is raised where the item came from.
Operation = Callable[[Unit, Sequence[Item]], Sequence[Result | RedriveError]]

GROUP_LIMIT = 5_000  # items; a longer queue is committed in several groups
PATIENCE = 10.0  # seconds that work which may be refused waits out a busy database


class Entry(Generic[Item, Result]):
    """One item on its way to the store, and where its answer goes."""

    __slots__ = ("answer", "future", "item", "must_land", "operation", "since")

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
        self.since = time.monotonic()
        self.answer: Result | BaseException | None = None


class StoreFailed(RedriveError):
    """The store cannot go on; the daemon stops with this."""

    code = "store_failed"


def run_group(unit: Unit, entries: Sequence[Entry[Any, Any]]) -> Landed:
    """Do everything the entries ask for, each failing alone, and write down what was said."""
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


class Writer:
    """The thread that owns the only writing connection."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        node: str,
        *,
        on_landed: Callable[[Landed], None] = lambda landed: None,
        on_trouble: Callable[[Trouble | None], None] = lambda trouble: None,
        on_failed: Callable[[StoreFailed], None] = lambda failed: None,
    ) -> None:
        self.database = database
        self.clock = clock
        self.node = node
        self.trouble: Trouble | None = None
        self.groups = 0
        self._on_landed = on_landed
        self._on_trouble = on_trouble
        self._on_failed = on_failed
        # Filled by the loop, emptied by the thread.
        self._waiting: deque[Entry[Any, Any]] = deque()
        self._wake = threading.Condition()
        self._untidy = False
        self._stopping = False
        self._stop_by = float("inf")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    async def stop(self, within: float = 10.0) -> None:
        """Land what is waiting, as far as the database lets us in that time, and end."""
        with self._wake:
            self._stopping = True
            self._stop_by = time.monotonic() + within
            self._wake.notify()
        await asyncio.to_thread(self._thread.join)

    def submit(
        self, operation: Operation[Item, Result], item: Item, *, must_land: bool = False
    ) -> asyncio.Future[Result]:
        """Ask for a change; the answer comes once it is on disk."""
        if self._loop is None:
            raise RuntimeError("the writer has not been started")
        future: asyncio.Future[Result] = self._loop.create_future()
        if self._stopping:
            future.set_exception(TryLater("the daemon is stopping", hint="ask the next one"))
            return future
        entry = Entry(operation, item, future, must_land)
        with self._wake:
            self._waiting.append(entry)
            self._wake.notify()
        return future

    def tidy(self) -> None:
        """Shrink the file and its log, in moments in which nothing else waits."""
        self._untidy = True

    @property
    def backlog(self) -> int:
        return len(self._waiting)

    # ---- in the thread -------------------------------------------------------------------

    def _run(self) -> None:
        pause = 0.0
        while group := self._next_group():
            try:
                landed = self._commit(group)
            except Exception as error:  # noqa: BLE001 - the edge of the thread: sorted below
                pause = self._after_failure(group, error, pause)
                if pause < 0:
                    return
                self._rest(pause)
                continue
            pause = 0.0
            self._deliver(group, landed)
            if self._untidy and not self._waiting:
                self._untidy = self._tidy()

    def _next_group(self) -> list[Entry[Any, Any]]:
        with self._wake:
            while not self._waiting and not self._stopping:
                self._wake.wait()
            count = min(len(self._waiting), GROUP_LIMIT)
            return [self._waiting.popleft() for _ in range(count)]

    def _commit(self, group: list[Entry[Any, Any]]) -> Landed:
        with self.database.writers.connect() as connection:
            with connection.begin():
                unit = Unit(connection, self.database, self.node, self._now(connection))
                landed = run_group(unit, group)
            self.groups += 1
            return landed

    def _tidy(self) -> bool:
        try:
            return self.database.tidy()
        except Exception as error:  # noqa: BLE001 - nothing was asked of us: another time
            log.info("the store could not be tidied: %s", error)
            return False

    def _now(self, connection: Connection) -> int:
        return self.database.now(connection, self.clock.now())

    def _after_failure(self, group: list[Entry[Any, Any]], error: Exception, pause: float) -> float:
        """What becomes of a group that did not land; how long to rest, below 0: for ever."""
        trouble = self.database.trouble(error)
        if trouble is None:  # the operation's own doing, and it was alone
            for entry in group:
                entry.answer = error
            self._deliver(group, None)
            return 0.0
        self._note(trouble)
        log.warning("the store is in trouble (%s): %s", trouble, getattr(error, "orig", error))
        if trouble in (Trouble.IO, Trouble.CORRUPT):
            self._fail(group, trouble, error)
            return -1.0
        patience = 0.0 if trouble in (Trouble.FULL, Trouble.READ_ONLY) else PATIENCE
        self._keep(group, trouble, patience)
        return 1.0 if patience == 0 else min(max(pause * 2, 0.01), 1.0)

    def _keep(self, group: list[Entry[Any, Any]], trouble: Trouble, patience: float) -> None:
        """Back into the queue with what must land or may still wait; refuse the rest."""
        now = time.monotonic()
        refused: list[Entry[Any, Any]] = []
        for entry in reversed(group):
            may_wait = entry.must_land or now - entry.since < patience
            if may_wait and now < self._stop_by:
                self._waiting.appendleft(entry)
            else:
                entry.answer = TryLater(
                    f"the store cannot take this now ({_WORDS[trouble]})",
                    hint="nothing was changed; `redrive doctor` says more",
                    retry_after=1.0,
                )
                refused.append(entry)
        self._deliver(refused, None)

    def _fail(self, group: list[Entry[Any, Any]], trouble: Trouble, error: Exception) -> None:
        failed = StoreFailed(
            f"the store cannot go on ({_WORDS[trouble]}): {getattr(error, 'orig', error)}",
            hint="check the disk; a corrupt store is restored with `redrive restore FILE`",
        )
        self._stopping = True
        everything = [*group, *self._waiting]
        for entry in everything:
            entry.answer = failed
        self._deliver(everything, None)
        self._in_loop(lambda: self._on_failed(failed))

    def _rest(self, seconds: float) -> None:
        if seconds:
            time.sleep(seconds)

    def _note(self, trouble: Trouble | None) -> None:
        if trouble is not self.trouble:
            self.trouble = trouble
            self._in_loop(lambda: self._on_trouble(trouble))

    def _deliver(self, entries: list[Entry[Any, Any]], landed: Landed | None) -> None:
        if landed is not None:
            self._note(None)
        self._in_loop(lambda: self._answer(entries, landed))

    def _in_loop(self, call: Callable[[], None]) -> None:
        assert self._loop is not None
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call)

    # ---- in the loop ---------------------------------------------------------------------

    def _answer(self, entries: list[Entry[Any, Any]], landed: Landed | None) -> None:
        # The announcement first: whoever is told "enqueued" may ask for it at once.
        if landed is not None:
            self._on_landed(landed)
        for entry in entries:
            future = entry.future
            if future is None or future.done():
                continue
            if isinstance(entry.answer, BaseException):
                future.set_exception(entry.answer)
            else:
                future.set_result(entry.answer)


_WORDS = {
    Trouble.BUSY: "another program holds the database",
    Trouble.GONE: "the database does not answer",
    Trouble.FULL: "the disk is full",
    Trouble.READ_ONLY: "the database is read only",
    Trouble.IO: "the disk reports errors",
    Trouble.CORRUPT: "the database file is damaged",
}
