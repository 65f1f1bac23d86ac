"""A page of the jobs that a filter lets through, and how many there are of them."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection

from redrive.filters import Filter
from redrived.store import job_pages, tallies
from redrived.store.narrowing import Narrowed, narrowed

COUNT_UP_TO = 1_000_000  # where the counts cannot tell; beyond it "more than" is all one is told


class Listed(NamedTuple):
    page: job_pages.Page
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
    counts, aside = tallies.read_with_waits(connection)
    found = narrowed(connection, filter, counts, aside, now, sort=sort)
    total, exact = tallies.matching(counts, filter), True
    if found.is_empty:
        total = 0
    elif count and total is None and offset:  # a jump is shorter from the nearer end
        total, exact = _counted(connection, found)
    page = job_pages.page(
        connection,
        found.where,
        sort=sort,
        limit=limit,
        after=after,
        offset=offset,
        total=total if exact else None,
        parts=found.parts,
    )
    if count and total is None:
        if after is None and page.after is None:  # these are all
            total = len(page.jobs)
        else:
            total, exact = _counted(connection, found)
    return Listed(page, total if count else None, exact)


def _counted(connection: Connection, found: Narrowed) -> tuple[int, bool]:
    total = job_pages.count(connection, found.where, COUNT_UP_TO)
    return total, total < COUNT_UP_TO
