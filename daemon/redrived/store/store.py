"""The store as the daemon holds it: opened, migrated, one writer, some readers."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import ColumnElement, Connection, text
from sqlalchemy.exc import DBAPIError

from redrive.clock import Clock
from redrive.errors import Exit, RedriveError, TryLater
from redrived.store import tallies
from redrived.store.connections import Durability
from redrived.store.database import Database, Trouble, said
from redrived.store.group import Operation
from redrived.store.ownership import mark_as_ours
from redrived.store.schema import migrate
from redrived.store.unit import Landed
from redrived.store.writer import RESTORE, StoreFailed, Writer

log = logging.getLogger(__name__)

# What those who ask questions pass around; only the store itself says more of SQL.
Condition = ColumnElement[bool]
__all__ = ["Condition", "Connection", "Store"]

Arguments = ParamSpec("Arguments")
Item = TypeVar("Item")
Result = TypeVar("Result")

READERS = 3


class Store:
    """Changes go through `submit`, questions through `read`; neither waits for the other."""

    def __init__(self, url: str, clock: Clock, node: str, durability: Durability = "full") -> None:
        self.database = Database(url, durability)
        self.clock = clock
        self.id = ""  # of the database, given at its creation
        self.landed: list[Callable[[Landed], None]] = []  # called in the loop, in commit order
        self.troubled: list[Callable[[Trouble | None], None]] = []
        self.failed: asyncio.Future[None] | None = None  # broken once the store cannot go on
        self.writer = Writer(
            self.database,
            clock,
            node,
            on_landed=self._announce,
            on_trouble=self._tell_trouble,
            on_failed=self._fail,
        )
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="reader")
        self._counting: asyncio.Task[None] | None = None

    async def open(self) -> None:
        self.failed = asyncio.get_running_loop().create_future()
        try:
            self.id = await asyncio.to_thread(self._prepare)
        except Exception as error:
            trouble = self.database.trouble(error)
            if trouble is None:
                raise
            failed = StoreFailed(
                f"the store {self.database.url} cannot be opened ({self.database.in_words(trouble)}):"
                f" {said(error)}",
                hint="look at `[store] url`, the rights and the disk;"
                " a damaged store is restored with `redrive restore FILE`",
            )
            if not trouble.lasts:
                failed.exit_code = Exit.TRY_LATER
            raise failed from error
        self.writer.start()
        if self.database.is_sqlite:  # where other nodes write, two of them would correct it twice
            self._counting = asyncio.create_task(self._check_counts(), name="counts")

    async def close(self) -> None:
        if self._counting is not None:
            self._counting.cancel()
        await self.writer.stop()
        await asyncio.to_thread(self._readers.shutdown)
        await asyncio.to_thread(self._finish)

    def submit(
        self, operation: Operation[Item, Result], item: Item, *, must_land: bool = False
    ) -> asyncio.Future[Result]:
        """Ask for a change; the answer comes once it is on disk."""
        return self.writer.submit(operation, item, must_land=must_land)

    def post(
        self, operation: Operation[Item, Result], item: Item, *, must_land: bool = True
    ) -> None:
        """Ask for a change whose answer nobody waits for."""
        self.submit(operation, item, must_land=must_land).add_done_callback(_complain)

    def stand(self, operation: Operation[Item, Result], item: Item) -> asyncio.Future[Result]:
        """Ask for a change in the first commit that makes something ready, as a part of it."""
        return self.writer.stand(operation, item)

    def withdraw(self, standing: asyncio.Future[Any]) -> bool:
        """Take back what stands; False when a commit has it already and the answer will come."""
        return self.writer.withdraw(standing)

    def now(self) -> int:
        """Its own time, by which what waits falls due; as near as this machine knows it."""
        return self.when_ours_shows(self.clock.now())

    def when_ours_shows(self, time: int) -> int:
        """The instant of the store's time at which this machine's clock shows that."""
        return time - self.writer.ahead

    def by_our_clock(self, instant: int) -> int:
        """What this machine's clock shows at an instant of the store's time, for timers."""
        return instant + self.writer.ahead

    async def read(
        self,
        question: Callable[Concatenate[Connection, Arguments], Result],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        """Ask something of the committed state, in a thread of its own."""

        def ask(connection: Connection) -> Result:
            return question(connection, *args, **kwargs)

        return await asyncio.get_running_loop().run_in_executor(self._readers, self._ask, ask)

    def _ask(self, question: Callable[[Connection], Result], is_lenient: bool = False) -> Result:
        try:
            with self.database.readers.connect() as connection, connection.begin():
                if is_lenient:
                    self.database.be_lenient(connection)
                return question(connection)
        except Exception as error:
            if self.database.met_no_text(error) and not is_lenient:
                return self._ask(question, is_lenient=True)
            trouble = self.database.trouble(error)
            if trouble is None:
                raise
            what = f"({self.database.in_words(trouble)}): {said(error)}"
            if trouble.lasts:
                raise StoreFailed(f"the store cannot be read {what}", hint=RESTORE) from error
            raise TryLater(
                f"the store cannot be asked now {what}",
                hint="`redrive doctor` says more",
                retry_after=1.0,
            ) from error

    async def _check_counts(self) -> None:
        """Count every job once, while work goes on: a million of them hold up no start."""
        try:
            missing = await self.read(tallies.missing)
            if missing:
                log.warning("the counts of jobs were wrong and are corrected: %s", missing)
                await self.submit(tallies.correct, missing)
        except (RedriveError, DBAPIError) as error:
            log.warning("the counts of jobs could not be checked: %s", said(error))

    def _prepare(self) -> str:
        self.database.make_room()
        with self.database.writers.connect() as connection, connection.begin():
            self.database.lock(connection, "schema")
            migrate(connection)
            if self.database.is_sqlite:
                mark_as_ours(connection)
            return _store_id(connection)

    def _finish(self) -> None:
        self.database.readers.dispose()
        self.database.checkpoint()
        self.database.close()

    def _announce(self, landed: Landed) -> None:
        for listener in self.landed:
            listener(landed)

    def _tell_trouble(self, trouble: Trouble | None) -> None:
        for listener in self.troubled:
            listener(trouble)

    def _fail(self, failed: StoreFailed) -> None:
        if self.failed is not None and not self.failed.done():
            self.failed.set_exception(failed)


def _store_id(connection: Connection) -> str:
    connection.execute(
        text(
            "INSERT INTO facts (name, value) VALUES ('store', :fresh) ON CONFLICT (name) DO NOTHING"
        ),
        {"fresh": uuid.uuid4().hex},
    )
    return str(
        connection.execute(text("SELECT value FROM facts WHERE name = 'store'")).scalar_one()
    )


def _complain(posted: asyncio.Future[Any]) -> None:
    if not posted.cancelled() and (error := posted.exception()) is not None:
        log.error("a change could not be stored: %s", error)
