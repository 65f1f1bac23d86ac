"""Makes jobs of what applications asked for inside transactions of their own.

Any node may: `Peers` looks once a second whether anything waits. What is refused stays, and is
looked at again when this node has other definitions, or when another node has refused it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import msgspec

from redrive.errors import RedriveError, TryLater, UsageProblem
from redrive.protocol.commands import Enqueue, JobOrder
from redrived.engine import intake
from redrived.engine.definitions import Definitions
from redrived.service import Loop
from redrived.store import outbox
from redrived.store.database import said
from redrived.store.enqueue import Order
from redrived.store.outbox import Declined, Granted, Wish
from redrived.store.store import Store
from redrived.store.writer import StoreFailed

LONGEST_WHY = 2_000  # characters

log = logging.getLogger(__name__)


class _Written(JobOrder, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A wish as it was written down, by our client or by anybody's SQL."""


class Outbox(Loop):
    """Used by the main loop only."""

    def __init__(self, store: Store, definitions: Callable[[], Definitions]) -> None:
        super().__init__()
        self._store = store
        self._definitions = definitions
        self._asked: Definitions | None = None  # those by which the refused were looked at
        self._refused_at: int = 0  # the newest refusal there is, and
        self._looked_until: int = 0  # the newest that was looked at

    def look(self, is_ordered: bool, refused_at: int | None) -> None:
        """Something waits, or was refused last at an instant; see whether we can do it."""
        if self._asked is not self._definitions():
            self._asked, self._looked_until = self._definitions(), 0
        self._refused_at = refused_at or 0
        if is_ordered or self._refused_at > self._looked_until:
            self.wake()

    @property
    def has_refused(self) -> bool:
        """Whether something lies there of which no node could make a job."""
        return self._refused_at > 0

    async def run_once(self) -> bool:
        since, after = self._looked_until, 0
        self._looked_until = max(self._refused_at, since)  # what is refused from now on is news
        try:
            while rows := await self._store.read(outbox.page, after, since):
                await self._settle(rows)
                after = rows[-1].id
        except RedriveError:
            self._looked_until = since
            raise
        return False

    async def _settle(self, rows: list[Wish]) -> None:
        """Each by itself: one that cannot be done holds up no other."""
        definitions = self._definitions()
        grants = (self._grant(definitions, row) for row in rows)
        for answer in await asyncio.gather(*grants, return_exceptions=True):
            if isinstance(answer, BaseException):
                raise answer

    async def _grant(self, definitions: Definitions, row: Wish) -> None:
        try:
            order = _order(definitions, row)
            await self._store.submit(outbox.grant, Granted(row, order))
        except (TryLater, StoreFailed):
            raise  # it is the store's trouble: the row waits
        except RedriveError as problem:
            await self._decline(row, str(problem))
        except Exception as error:  # noqa: BLE001 - whatever a row can do wrong, it does alone
            log.warning("a wish of the outbox cannot be stored: %s", said(error))
            await self._decline(row, f"it cannot be stored: {said(error)}")

    async def _decline(self, row: Wish, why: str) -> None:
        text = why.replace("\x00", "\N{REPLACEMENT CHARACTER}")[:LONGEST_WHY]
        await self._store.submit(outbox.decline, Declined(row, text))


def _order(definitions: Definitions, row: Wish) -> Order:
    """What the row asks for, as if it had been asked of this daemon."""
    try:
        wish = msgspec.json.decode(row.wish, type=_Written)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise UsageProblem(
            f"the wish cannot be read: {error}",
            hint=f"a JSON object of {', '.join(JobOrder.__struct_fields__)}",
        ) from None
    request = Enqueue(task=row.task, orders=[wish])
    return intake.order(definitions, request, outbox.asker(row.by), row.at, ticket=row.ticket)
