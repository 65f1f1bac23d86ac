"""A long list of jobs, of which only some pages are held: a million rows feel like a hundred."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from redrive.models import Job
from redrive.protocol.queries import JobPage

PAGE = 200
KEPT = 20


class JobPages:
    """The pages read so far; the least recently used ones are forgotten."""

    def __init__(self) -> None:
        self.total = 0
        self.exact = True
        self.as_of = 0  # the event up to which the list is true
        self.was_read = False  # whether any page was ever here
        self._pages: OrderedDict[int, list[Job]] = OrderedDict()

    def put(self, number: int, page: JobPage) -> None:
        # A reply without a count reaches at least to its own last row.
        reach = number * PAGE + len(page.jobs)
        self.total = max(self.total, reach) if page.total is None else page.total
        self.exact = page.exact and page.total is not None
        self.as_of = page.as_of
        self.was_read = True
        self._pages[number] = page.jobs
        self._pages.move_to_end(number)
        while len(self._pages) > KEPT:
            self._pages.popitem(last=False)

    def clear(self) -> None:
        self._pages.clear()

    def row(self, index: int) -> Job | None:
        """The job on a row; None when its page is not here."""
        page = self._pages.get(index // PAGE)
        place = index % PAGE
        return page[place] if page is not None and place < len(page) else None

    def place_of(self, job: int) -> int | None:
        """The row a job is on, if its page is here."""
        for number, page in self._pages.items():
            for place, row in enumerate(page):
                if row.id == job:
                    return number * PAGE + place
        return None

    def missing(self, first: int, last: int) -> list[int]:
        """The pages to read so that the rows first…last can be shown, and one ahead."""
        wanted = range(max(0, first) // PAGE, min(self.total - 1, last + PAGE) // PAGE + 1)
        for page in wanted:
            if page in self._pages:
                self._pages.move_to_end(page)
        return [page for page in wanted if page not in self._pages]

    def known(self, rows: Iterable[int]) -> list[Job]:
        """The jobs on these rows, as far as they are here."""
        return [job for index in rows if (job := self.row(index)) is not None]
