"""A page of the jobs that a filter lets through, and how many there are of them."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection

from redrive.filters import Filter
from redrived.store import jobs, tallies
from redrived.store.narrowing import narrowed

COUNT_UP_TO = 1_000_000  # where the counts cannot tell; beyond it "more than" is all one is told


class Listed(NamedTuple):
    page: jobs.Page
    total: int | None
    exact: bool


def listed(
    connection: Connection,
    filter: Filter,
    now: int,
    *,
    sort: str = "-id",
    limit: int = 50,
    after: str | None = None,
    offset: int = 0,
    count: bool = False,
) -> Listed:
    counts = tallies.read(connection)
    found = narrowed(filter, counts, now, is_sqlite=connection.dialect.name == "sqlite")
    total, exact = tallies.matching(counts, filter), True
    if found.is_empty:
        total = 0
    elif count and total is None:
        total = jobs.count(connection, found.where, COUNT_UP_TO)
        exact = total < COUNT_UP_TO
    page = jobs.page(
        connection,
        found.where,
        sort=sort,
        limit=limit,
        after=after,
        offset=offset,
        total=total if exact else None,
        parts=found.parts,
    )
    return Listed(page, total if count else None, exact)
