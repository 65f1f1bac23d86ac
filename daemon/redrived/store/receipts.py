"""Which requests were carried out, written in the commit that did it.

What they were answered is kept in memory (`api.receipts`) and goes with the daemon. That they
were carried out must not: whoever lost the answer in a crash would do the thing twice. A commit
writes one row for all requests in it, so that this costs the work next to nothing.
"""

from __future__ import annotations

from contextvars import ContextVar

import msgspec
from sqlalchemy import Connection, text


class Receipt(msgspec.Struct, frozen=True, array_like=True):
    who: str
    id: str  # of the request
    body: int  # its checksum


class Carried:
    """The request that a task of the loop is at; its first change takes the receipt along."""

    def __init__(self, receipt: Receipt) -> None:
        self._receipt: Receipt | None = receipt

    def take(self) -> Receipt | None:
        receipt, self._receipt = self._receipt, None
        return receipt


carried: ContextVar[Carried | None] = ContextVar("carried", default=None)


def taken() -> Receipt | None:
    """What a change that is asked for now is to leave behind."""
    request = carried.get()
    return None if request is None else request.take()


WRITE = "INSERT INTO receipts (at, requests) VALUES (:at, :requests)"

_RECENT = text(
    "SELECT requests FROM receipts WHERE at >= :since AND id >"
    " (SELECT coalesce(max(id), 0) - :most FROM receipts) ORDER BY id"
)


_ABOUT = text("SELECT requests FROM receipts WHERE at >= :since AND requests LIKE :about")


def was_carried_out(connection: Connection, who: str, id: str, since: int) -> bool:
    """Whether any daemon on this store has, since an instant."""
    rows = connection.execute(_ABOUT, {"since": since, "about": f'%"{id}"%'}).scalars()
    return any(
        (each.who, each.id) == (who, id)
        for row in rows
        for each in msgspec.json.decode(row, type=list[Receipt])
    )


def recent(connection: Connection, since: int, most: int) -> list[Receipt]:
    """The newest since an instant, oldest first."""
    rows = connection.execute(_RECENT, {"since": since, "most": most}).scalars()
    found = [each for row in rows for each in msgspec.json.decode(row, type=list[Receipt])]
    return found[-most:]
