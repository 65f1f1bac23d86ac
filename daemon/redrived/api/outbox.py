"""The outbox: what waits in it, what became of an order, and removing one that is no job."""

from __future__ import annotations

from redrive.errors import NotFound, UsageProblem, WrongState
from redrive.protocol.commands import DiscardOrder, Done
from redrive.protocol.queries import ListOutbox, OutboxPage
from redrived.api.server import Asker
from redrived.engine.engine import Engine
from redrived.store import outbox
from redrived.store.outbox import Discard

LONGEST_PAGE = 10_000


async def list_outbox(engine: Engine, asker: Asker, request: ListOutbox) -> OutboxPage:
    _refuse_sqlite(engine)
    if request.ticket is None:
        limit = max(1, min(request.limit, LONGEST_PAGE))
        return OutboxPage(orders=await engine.store.read(outbox.unsettled, limit))
    order = await engine.store.read(outbox.fate, request.ticket)
    if order is None:
        raise _not_there(request.ticket)
    return OutboxPage(orders=[order])


async def discard_order(engine: Engine, asker: Asker, request: DiscardOrder) -> Done:
    _refuse_sqlite(engine)
    was = await engine.store.submit(outbox.discard, Discard(request.ticket, asker.who))
    if was is None:
        raise _not_there(request.ticket)
    if was in ("created", "known"):
        raise WrongState(
            f"order {request.ticket} is a job by now",
            hint=f"`redrive outbox {request.ticket}` says which; discard that",
        )
    return Done(text=f"order {request.ticket} is discarded", data={"ticket": request.ticket})


def _refuse_sqlite(engine: Engine) -> None:
    if engine.store.database.is_sqlite:
        raise UsageProblem(
            "the store is SQLite, which has no outbox",
            hint="applications enqueue inside their transactions where they share PostgreSQL",
        )


def _not_there(ticket: str) -> NotFound:
    return NotFound(
        f"there is no order {ticket[:50]!r}",
        hint="its transaction has not been committed, or its job is forgotten",
    )
