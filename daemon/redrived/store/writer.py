"""The one writer: group commit.

What arrives while a commit is under way becomes the next commit, and nobody is told anything
before it is on disk. Each operation of a group fails alone; trouble of the database ends the
whole unit of work, because after "disk full" SQLite has already rolled back and would commit
the next statement by itself. What then becomes of the group depends on the trouble:

| trouble | the work in the group |
|---|---|
| busy, gone, missing | all of it again, after a growing pause; what may not wait that long is refused |
| full, read only | what must land (ends of attempts) is kept and tried again each second, the rest is refused |
| io, corrupt | the writer stops; the daemon goes down and says so |

Where the connection went away during the commit itself, nobody knows whether the group is on
disk: PostgreSQL is asked what became of the transaction before anything is done again.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from sqlalchemy import Connection

from redrive.clock import Clock
from redrive.config.sections import Queue
from redrive.errors import RedriveError, TryLater
from redrived.store.database import Database, Trouble, said
from redrived.store.group import Entry, GroupFailed, Item, Operation, Result, run_group
from redrived.store.receipts import taken
from redrived.store.unit import Landed, NeedsCare, Unit

log = logging.getLogger(__name__)

GROUP_LIMIT = 5_000  # items; a longer queue is committed in several groups
PATIENCE = 10.0  # seconds that work which may be refused waits out a busy database
RESTORE = "check the disk; a corrupt store is restored with `redrive restore FILE`"


class StoreFailed(RedriveError):
    """The store cannot go on; the daemon stops with this."""

    code = "store_failed"


class Doubt(NamedTuple):
    """A group whose commit was asked for and never answered."""

    transaction: str
    group: list[Entry[Any, Any]]
    landed: Landed


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
        self.queues: Mapping[str, Queue] = {}  # of the config; replaced as a whole
        self.trouble: Trouble | None = None
        self.groups = 0
        self.ahead = 0  # microseconds that our clock is ahead of the database's, as last seen
        self._on_landed = on_landed
        self._on_trouble = on_trouble
        self._on_failed = on_failed
        # Filled by the loop, emptied by the thread.
        self._waiting: deque[Entry[Any, Any]] = deque()
        self._wake = threading.Condition()
        self._standing: Entry[Any, Any] | None = None
        self._untidy = False
        self._alone = 0  # how many of those that come next are to have a commit each
        self._doubt: Doubt | None = None
        self._connection: Connection | None = None  # the thread's, between groups too
        self._stopping = False
        self._stop_by = float("inf")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)

    @property
    def trouble_in_words(self) -> str | None:
        return self.database.in_words(self.trouble) if self.trouble else None

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    async def stop(self, within: float = 10.0) -> None:
        """Land what is waiting, as far as the database lets us in that time, and end."""
        with self._wake:
            self._stopping = True
            self._stop_by = time.monotonic() + within
            self._wake.notify()
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join)

    def submit(
        self, operation: Operation[Item, Result], item: Item, *, must_land: bool = False
    ) -> asyncio.Future[Result]:
        """Ask for a change; the answer comes once it is on disk."""
        if self._loop is None:
            raise RuntimeError("the writer has not been started")
        future: asyncio.Future[Result] = self._loop.create_future()
        entry = Entry(operation, item, future, must_land)
        entry.receipt = taken()
        with self._wake:
            if self._stopping:
                future.set_exception(TryLater("the daemon is stopping", hint="ask the next one"))
            else:
                self._waiting.append(entry)
                self._wake.notify()
        return future

    def stand(self, operation: Operation[Item, Result], item: Item) -> asyncio.Future[Result]:
        """Ask for a change in the first commit that makes something ready, as a part of it."""
        if self._loop is None:
            raise RuntimeError("the writer has not been started")
        future: asyncio.Future[Result] = self._loop.create_future()
        with self._wake:
            self._standing = Entry(operation, item, future, must_land=False)
        return future

    def withdraw(self, future: asyncio.Future[Any]) -> bool:
        """Take back what stands; False when a commit has it already and the answer will come."""
        with self._wake:
            standing = self._standing
            if standing is None or standing.future is not future:
                return False
            self._standing = None
        future.cancel()
        return True

    def tidy(self) -> None:
        """Shrink the file and its log, in moments in which nothing else waits."""
        self._untidy = True

    @property
    def backlog(self) -> int:
        return len(self._waiting)

    # ---- in the thread -------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._work()
        finally:
            self._let_go()

    def _work(self) -> None:
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
        if self._doubt is not None:
            return self._doubt.group
        with self._wake:
            while not self._waiting and not self._stopping:
                self._wake.wait()
            count = min(len(self._waiting), 1 if self._alone else GROUP_LIMIT)
            self._alone -= 1 if self._alone else 0
            return [self._waiting.popleft() for _ in range(count)]

    def _commit(self, group: list[Entry[Any, Any]]) -> Landed:
        try:
            return self._try(group)
        except GroupFailed as failed:
            is_lenient = self.database.met_no_text(failed.error)
            if len(group) == 1 and not is_lenient and not isinstance(failed.error, NeedsCare):
                raise failed.error from None
            return self._try(group, careful=True, is_lenient=is_lenient)

    def _try(
        self, group: list[Entry[Any, Any]], *, careful: bool = False, is_lenient: bool = False
    ) -> Landed:
        # To take it from its pool and put it back costs as much as a small change.
        connection = self._connection = self._connection or self.database.writers.connect()
        try:
            if self._doubt is not None and (landed := self._landed_after_all(connection)):
                return landed
            if is_lenient:
                self.database.be_lenient(connection)
            with connection.begin():
                now, transaction = self.database.begin(connection, self.clock.now())
                # Asked after it: a timer that goes by this is never early, and need not ask twice.
                self.ahead = 0 if transaction is None else self.clock.now() - now
                unit = Unit(
                    connection,
                    self.database,
                    self.node,
                    now,
                    careful=careful,
                    queues=self.queues,
                )
                landed = run_group(unit, group, self._take_standing)
                if transaction is not None:
                    self._doubt = Doubt(transaction, group, landed)
        except BaseException:
            self._let_go()  # in whatever state it is: the next group gets a sound one
            raise
        self._doubt = None
        self.groups += 1
        return landed

    def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _take_standing(self) -> Entry[Any, Any] | None:
        with self._wake:
            standing, self._standing = self._standing, None
            return standing

    def _landed_after_all(self, connection: Connection) -> Landed | None:
        assert self._doubt is not None
        with connection.begin():
            has_committed = self.database.has_committed(connection, self._doubt.transaction)
        doubt, self._doubt = self._doubt, None
        return doubt.landed if has_committed else None

    def _tidy(self) -> bool:
        try:
            return self.database.tidy()
        except Exception as error:  # noqa: BLE001 - nothing was asked of us: another time
            log.info("the store could not be tidied: %s", error)
            return False

    def _after_failure(self, group: list[Entry[Any, Any]], error: Exception, pause: float) -> float:
        """What becomes of a group that did not land; how long to rest, below 0: for ever."""
        trouble = self.database.trouble(error)
        if trouble is not Trouble.GONE:
            self._doubt = None
        if trouble is None:
            self._put_down(group, error)
            return 0.0
        self._note(trouble, error)
        if trouble.lasts:
            self._fail(group, trouble, error)
            return -1.0
        patience = 0.0 if trouble in (Trouble.FULL, Trouble.READ_ONLY) else PATIENCE
        if self._doubt is None or time.monotonic() >= self._stop_by:
            self._keep(group, trouble, patience)
        return 1.0 if patience == 0 else min(max(pause * 2, 0.01), 1.0)

    def _put_down(self, group: list[Entry[Any, Any]], error: Exception) -> None:
        """One of them cannot be written; alone, each finds out whether it is the one."""
        if len(group) > 1:
            self._waiting.extendleft(reversed(group))
            self._alone = len(group)
            return
        group[0].answer = error
        self._deliver(group, None)

    def _keep(self, group: list[Entry[Any, Any]], trouble: Trouble, patience: float) -> None:
        """Back into the queue with what must land or may still wait; refuse the rest."""
        now = time.monotonic()
        if now >= self._stop_by:
            group += self._take_all()
        refused: list[Entry[Any, Any]] = []
        for entry in reversed(group):
            may_wait = entry.must_land or now - entry.since < patience
            if may_wait and now < self._stop_by:
                self._waiting.appendleft(entry)
            else:
                entry.answer = TryLater(
                    f"the store cannot take this now ({self.database.in_words(trouble)})",
                    hint="it may have been done: look first"
                    if self._doubt
                    else "nothing was changed; `redrive doctor` says more",
                    retry_after=1.0,
                )
                refused.append(entry)
        self._doubt = None
        self._deliver(refused, None)

    def _fail(self, group: list[Entry[Any, Any]], trouble: Trouble, error: Exception) -> None:
        failed = StoreFailed(
            f"the store cannot go on ({self.database.in_words(trouble)}): {said(error)}",
            hint=RESTORE,
        )
        everything = [*group, *self._take_all()]
        for entry in everything:
            entry.answer = failed
        self._deliver(everything, None)
        self._in_loop(lambda: self._on_failed(failed))

    def _take_all(self) -> list[Entry[Any, Any]]:
        """The end: nothing more is let in, and what waits is handed out."""
        with self._wake:
            self._stopping = True
            waiting = list(self._waiting)
            self._waiting.clear()
        return waiting

    def _rest(self, seconds: float) -> None:
        time.sleep(max(0.0, min(seconds, self._stop_by - time.monotonic())))

    def _note(self, trouble: Trouble | None, error: Exception | None = None) -> None:
        if trouble is not self.trouble:
            self.trouble = trouble
            if error is None:
                log.warning("the store works again")
            else:
                log.warning("the store is in trouble (%s): %s", trouble, said(error))
            self._in_loop(lambda: self._on_trouble(trouble))

    def _deliver(self, entries: list[Entry[Any, Any]], landed: Landed | None) -> None:
        if landed is not None and self._is_over():
            self._note(None)
        self._in_loop(lambda: self._answer(entries, landed))

    def _is_over(self) -> bool:
        """Whether a commit shows that all is well: one that changed nothing needs no room."""
        return self.trouble not in (Trouble.FULL, Trouble.READ_ONLY) or self.database.has_room()

    def _in_loop(self, call: Callable[[], None]) -> None:
        assert self._loop is not None
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call)

    # ---- in the loop ---------------------------------------------------------------------

    def _answer(self, entries: list[Entry[Any, Any]], landed: Landed | None) -> None:
        # The announcement first: whoever is told "enqueued" may ask for it at once.
        try:
            if landed is not None:
                self._on_landed(landed)
        finally:
            for entry in entries:
                entry.tell()
