"""Reading a long list of jobs page by page, and finding a job again after the list has moved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from redrive.filters import Filter, parse, render
from redrive.filters.rendering import quoted
from redrive.models import Record
from redrive.protocol.queries import JobPage, ListJobs
from redrive_tui.job_pages import PAGE
from redrive_tui.source import Source

NEWEST_FIRST = "-id"
IDS_AT_ONCE = 200


class JobList(Record, frozen=True, kw_only=True):
    """Which list: the jobs that match, in an order."""

    where: str = ""
    sort: str = NEWEST_FIRST

    @staticmethod
    def of(text: str, sort: str = NEWEST_FIRST) -> JobList:
        """The list a filter asks for; `sort` is the order where it says none itself."""
        filter = parse(text)
        where = render(Filter(terms=filter.terms))
        if not filter.sort:
            return JobList(where=where, sort=sort)
        first = filter.sort[0]
        return JobList(where=where, sort=f"-{first.key}" if first.descending else first.key)

    async def page(self, source: Source, number: int) -> JobPage:
        """One page of the table: of jobs that hold much, put together from several messages."""
        page: JobPage = await source.ask(
            ListJobs(where=self.where, sort=self.sort, offset=number * PAGE, limit=PAGE, count=True)
        )
        jobs, after = list(page.jobs), page.after
        while after is not None and len(jobs) < PAGE:
            left = PAGE - len(jobs)
            more: JobPage = await source.ask(
                ListJobs(where=self.where, sort=self.sort, after=after, limit=left)
            )
            jobs += more.jobs
            after = more.after
        return msgspec.structs.replace(page, jobs=jobs, after=after)

    async def around(
        self, source: Source, in_view: Iterable[int], anchor: int
    ) -> dict[int, JobPage]:
        """The pages in view, or, when the anchor has moved out of them, the pages where it is."""
        pages = {number: await self.page(source, number) for number in in_view}
        if any(job.id == anchor for page in pages.values() for job in page.jobs):
            return pages
        number = await self._page_of(source, anchor)
        if number is not None and number not in pages:
            found = await self.page(source, number)
            if any(job.id == anchor for job in found.jobs):
                return {number: found}
        return pages

    async def _page_of(self, source: Source, job: int) -> int | None:
        """Where a job must be by now; only the order of ids tells without reading it all."""
        if self.sort != NEWEST_FIRST:
            return None
        newer = await self.count(source, f"id>{job}")
        return None if newer is None else newer // PAGE

    async def count_of(self, source: Source, jobs: Sequence[int]) -> int:
        """How many of these jobs are in the list; a filter takes only so many at once."""
        found = 0
        for first in range(0, len(jobs), IDS_AT_ONCE):
            ids = ",".join(map(str, jobs[first : first + IDS_AT_ONCE]))
            found += await self.count(source, f"id:{ids}") or 0
        return found

    async def count(self, source: Source, also: str) -> int | None:
        """How many jobs of the list fit one more condition; None when they are too many to count."""
        where = f"{self.where} {also}".strip()
        page: JobPage = await source.ask(ListJobs(where=where, limit=1, count=True))
        return page.total if page.exact else None


def term(key: str, value: str) -> str:
    """A name from outside as part of a filter."""
    return f"{key}:{quoted(value)}"
