"""The list of jobs: paged, with marks that belong to jobs and not to rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from textual.message import Message

from redrive.models import Job
from redrive.protocol.queries import JobPage
from redrive_tui import keys
from redrive_tui.formatting import Line
from redrive_tui.job_pages import KEPT, PAGE, JobPages
from redrive_tui.widgets.table import Column, Table

ROWS_KEPT = (KEPT - 2) * PAGE  # beside those in view


class JobTable(Table):
    BINDINGS = keys.bindings("marks")

    class PagesWanted(Message):
        """Rows have come into view that are not here yet."""

        def __init__(self, pages: list[int]) -> None:
            super().__init__()
            self.pages = pages

    class Marked(Message):
        """The marks changed."""

    class AllWanted(Message):
        """Everything that matches is to be marked, as of now."""

    def __init__(
        self,
        columns: Sequence[Column],
        cells: Callable[[Job], list[Line]],
        *,
        id: str | None = None,
    ) -> None:
        super().__init__(columns, id=id)
        self.pages = JobPages()
        self.marks: dict[int, Job] = {}  # as they were when marked
        self.all_marked = False
        self._cells = cells
        self._range_from: int | None = None
        self._range_marks: dict[int, Job] = {}

    # Data in.

    def put(self, number: int, page: JobPage) -> None:
        """One more page of the list that is shown."""
        self.pages.put(number, page)
        self.resized()
        if self._range_from is not None:
            self._mark_range()
            self._tell()
        self.repaint()

    def renew(self, pages: Mapping[int, JobPage]) -> None:
        """The list anew: the cursor stays on its job, at its height, or says that it is gone."""
        anchor, screen_row = self.current, self.screen_row
        self.end_range()
        self.pages.clear()
        for number, page in pages.items():
            self.pages.put(number, page)
        self.resized()
        if anchor is not None:
            place = self.pages.place_of(anchor.id)
            if place is None:
                self.lose(anchor.id)
            self.put_cursor(self.cursor if place is None else place, screen_row=screen_row)
        self._want()
        self.repaint()

    def restart(self, page: JobPage) -> None:
        """Another list: from its top."""
        self.end_range()
        self.pages.clear()
        self.pages.put(0, page)
        self.lost = None
        self.resized()
        self.put_cursor(0, screen_row=0)
        self.repaint()

    # Data out.

    @property
    def current(self) -> Job | None:
        return self.pages.row(self.cursor)

    def in_view(self) -> range:
        top = self.scroll_offset.y
        return range(top, min(self.row_count(), top + max(1, self.size.height)))

    def row_count(self) -> int:
        return self.pages.total

    def is_known(self) -> bool:
        return self.pages.was_read

    def cells(self, row: int) -> list[Line] | None:
        job = self.pages.row(row)
        return None if job is None else self._cells(job)

    def is_marked(self, row: int) -> bool:
        if self.all_marked:
            return True
        job = self.pages.row(row)
        return job is not None and (job.id in self.marks or job.id in self._range_marks)

    # Wants.

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._want()

    def on_resize(self) -> None:
        self._want()

    def want_again(self) -> None:
        """What could not be had, or was put where it is before there was room to show it."""
        if self.current is None:
            self._keep_in_view()
        self._want()

    def _want(self) -> None:
        view = self.in_view()
        pages = self.pages.missing(view.start, view.stop)
        if self._range_from is not None and len(self._range) <= ROWS_KEPT:
            pages += self.pages.missing(self._range.start, self._range.stop)
        if pages:
            self.post_message(self.PagesWanted(sorted(set(pages))))

    # Marks.

    def watch_cursor(self) -> None:
        self._mark_range()
        super().watch_cursor()
        if self._range_from is not None:
            self._want()

    @property
    def _range(self) -> range:
        """The rows of the open range; none while none is open."""
        if self._range_from is None:
            return range(0)
        low, high = sorted((self._range_from, self.cursor))
        return range(low, high + 1)

    def _mark_range(self) -> None:
        """What is between where the range began and the cursor, as far as it is here."""
        self._range_marks = {job.id: job for job in self.pages.known(self._range)}

    def action_mark(self) -> None:
        self._toggle()
        self.cursor += 1

    def action_mark_move(self, rows: int) -> None:
        if (job := self.current) is not None:
            self.marks[job.id] = job
        self.cursor += rows
        if (job := self.current) is not None:
            self.marks[job.id] = job
        self._tell()

    def action_range(self) -> None:
        if self._range_from is None:
            self._range_from = self.cursor
            self.watch_cursor()
        else:
            self.end_range()
        self._tell()

    def action_mark_all(self) -> None:
        self.post_message(self.AllWanted())

    def action_unmark(self) -> None:
        self.unmark()

    def end_range(self) -> None:
        """What it has marked stays so."""
        self.marks |= self._range_marks
        self._range_from = None
        self._range_marks = {}

    def unmark(self, jobs: Sequence[int] | None = None) -> None:
        """Take the mark off some jobs, or off all."""
        self.end_range()
        if jobs is None:
            self.marks.clear()
        else:
            for job in jobs:
                self.marks.pop(job, None)
        self.all_marked = False
        self._tell()

    @property
    def marked_jobs(self) -> list[Job]:
        """The jobs with a mark, those of an open range included."""
        return list((self.marks | self._range_marks).values())

    @property
    def has_marks(self) -> bool:
        return self.all_marked or bool(self.marked_jobs)

    def _toggle(self) -> None:
        job = self.current
        if job is None:
            return
        if job.id in self.marks:
            del self.marks[job.id]
        else:
            self.marks[job.id] = job
        self._tell()

    def _tell(self) -> None:
        self.repaint()
        self.post_message(self.Marked())
