"""2 Jobs: the list of all jobs, filtered, sorted, marked, acted upon."""

from __future__ import annotations

from msgspec.structs import replace
from textual import on, work
from textual.app import ComposeResult
from textual.widget import Widget
from textual.worker import Worker

from redrive.errors import RedriveError
from redrive.lifecycle import JobState
from redrive.models import Job, Progress
from redrive_tui import keys
from redrive_tui.acting import Intent
from redrive_tui.export import FORMATS, export
from redrive_tui.formatting import Line, apart, count, word_of
from redrive_tui.job_cells import job_cells
from redrive_tui.job_list import JobList
from redrive_tui.job_pages import PAGE
from redrive_tui.liveness import liveness
from redrive_tui.sanitize import clean
from redrive_tui.screens.job_actions import JobActions
from redrive_tui.screens.pane import REREAD_EVERY, Desk
from redrive_tui.widgets.dialogs import Choice
from redrive_tui.widgets.filter_bar import FilterBar
from redrive_tui.widgets.job_table import JobTable
from redrive_tui.widgets.lines import Panel
from redrive_tui.widgets.table import Column, Table
from redrive_tui.wishes import Fate, Ids, Matching, Selection

COLUMNS = [
    Column("ID", 8),
    Column("TASK", 18, from_width=46),
    Column("STATE", 11),
    Column("ATT", 5),
    Column("NEXT / RUNNING", 17, from_width=74),
    Column("QUEUE", 12, from_width=106),
    Column("NODE", 8, from_width=132),
    Column("LAST ERROR", 0, from_width=92),
]
SORTS = {
    "newest first": "-id",
    "oldest first": "id",
    "next to run": "next",
    "highest priority": "-priority",
    "most attempts": "-attempt",
    "oldest age": "-age",
    "last finished": "-finished",
}


class JobsPane(JobActions):
    context = "jobs"
    ALLOW_MAXIMIZE = True  # as a whole: its other lines say what one looks at
    BINDINGS = keys.bindings("filter")

    DEFAULT_CSS = """
    JobsPane JobTable { margin-top: 1; }
    """

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.list = JobList()
        self._held = self.list  # the one whose rows are in the table
        self._sort = self.list.sort  # chosen by hand; a filter may have its own
        self.table = JobTable(COLUMNS, self._cells)
        self.table.empty = "no job matches"
        self.bar = FilterBar()
        self.top = Panel([[]])
        self.bottom = Panel([[]])
        self.hidden = 0  # marked jobs that the filter does not show
        self._read_when = 0
        self._fetched_at = 0.0
        self._fetching: Worker[None] | None = None
        self.frozen = False  # by `u`; marks freeze it as well

    def compose(self) -> ComposeResult:
        yield self.top
        yield self.bar
        yield self.table
        yield self.bottom

    # Reading.

    async def read(self) -> None:
        source, anchor = self.desk.source, self.table.current
        which = self.list
        if anchor is None and self.table.cursor == 0:
            page = await which.page(source, 0)
            if which == self.list:
                self.table.restart(page)
                self._held = which
        elif anchor is not None and which == self._held:  # else rows are on their way
            view = self.table.in_view()
            numbers = range(view.start // PAGE, max(view.start, view.stop - 1) // PAGE + 1)
            pages = await which.around(source, numbers, anchor.id)
            if which == self.list and not self.is_frozen:
                self.table.renew(pages)
        self._read_when = self.desk.mirror.now()

    @on(JobTable.PagesWanted)
    def _fetch(self, event: JobTable.PagesWanted) -> None:
        if self._held == self.list:  # else another list is on its way, and these rows go
            self._fetching = self._fetch_pages(event.pages)

    @work(exclusive=True, group="pages", exit_on_error=False)
    async def _fetch_pages(self, numbers: list[int]) -> None:
        """Rows that came into view; a newer view cancels this one."""
        self._fetched_at = self.desk.mirror.clock.monotonic()
        for number in numbers:
            try:
                self.table.put(number, await self.list.page(self.desk.source, number))
            except RedriveError as problem:
                self.failed(problem)
                return

    def visit(self, filter: str) -> None:
        if filter != self.bar.text:
            self.bar.apply(filter)

    @on(FilterBar.Applied)
    def _filtered(self, event: FilterBar.Applied) -> None:
        if self.table.all_marked:
            self.table.unmark()  # what matched was meant, and something else does now
        self._turn_to(JobList.of(event.text, self._sort))

    def _turn_to(self, which: JobList) -> None:
        self.list = which
        self._fetching = self._restart()

    @work(exclusive=True, group="pages", exit_on_error=False)
    async def _restart(self) -> None:
        """Another list, from its top. Marks stay; those it does not show are counted."""
        which = self.list
        self._fetched_at = self.desk.mirror.clock.monotonic()
        try:
            self.table.restart(await which.page(self.desk.source, 0))
            self._held = which
            if self.is_frozen:
                self.stand_still()
            self._read_when = self.desk.mirror.now()
            await self._count_hidden()
        except RedriveError as problem:
            self.failed(problem)
        self.catch_up()

    async def _count_hidden(self) -> None:
        self.hidden = 0
        marks = [*self.table.marks]
        if marks and self.list.where:
            shown = await self.list.count_of(self.desk.source, marks)
            self.hidden = len(marks) - shown

    # Showing.

    @property
    def knows(self) -> bool:
        return self.table.is_known()

    def show(self) -> None:
        self.top.lines = [self._top_line()]
        self.bottom.lines = [self._bottom_line()]

    def tick(self) -> None:
        super().tick()
        self.catch_up()
        self.table.repaint()
        waited = self.desk.mirror.clock.monotonic() - self._fetched_at
        if waited >= REREAD_EVERY and (self._fetching is None or self._fetching.is_finished):
            if self._held == self.list:
                self.table.want_again()
            else:
                self._fetching = self._restart()

    def _cells(self, job: Job) -> list[Line]:
        mirror = self.desk.mirror
        nodes = mirror.status.nodes if mirror.status else []
        late = {node.name for node in nodes if liveness(node, mirror.as_of) != "fresh"}
        if not self.is_frozen:
            job = self._as_it_goes(job)
        return job_cells(job, mirror.as_of, self.desk.look, late)

    def _as_it_goes(self, job: Job) -> Job:
        """With the progress that its node told since the list was read."""
        told = self.desk.mirror.vitals.get(job.node or "", {}).get(job.id)
        if job.state is not JobState.LEASED or told is None or told.progress is None:
            return job
        done, total, text = told.progress
        return replace(job, progress=Progress(done=done, total=total, text=text))

    def _top_line(self) -> Line:
        pages, text = self.table.pages, self.bar.text
        left: Line = [("/ ", "key"), (clean(text), "strong") if text else ("all jobs", "dim")]
        if self._held != self.list:
            return apart(left, [("reading ···", "dim")], self.top.size.width)
        total = count(pages.total, exact=pages.exact)
        right: Line = []
        if self.list.sort != JobList.of(text).sort:  # what is chosen by hand stands nowhere else
            right.append((f"sort:{self.list.sort}  ", "accent"))
        right.append((f"{total} {'job' if pages.total == 1 else 'jobs'}", "strong"))
        right.append((f"  as of {self.desk.look.time(self._read_when)}", "dim"))
        return apart(left, right, self.top.size.width)

    def _bottom_line(self) -> Line:
        pages = self.table.pages
        place = self.table.cursor + 1 if pages.total else 0
        right: Line = [(f"{count(place)} of {count(pages.total, exact=pages.exact)}", "dim")]
        return apart(self._marks_line(), right, self.bottom.size.width)

    def _marks_line(self) -> Line:
        table = self.table
        parts: Line = []
        if table.all_marked:
            parts.append((f"all {count(table.pages.total)} that match are marked", "marked"))
        elif marks := table.marked_jobs:
            parts.append((f"{count(len(marks))} marked", "marked"))
        if self.hidden:
            parts.append((f"{count(self.hidden)} hidden by the filter", "warning"))
        if self.is_frozen:
            parts.append((self.standstill_words, "warning"))
        if not parts and self.list.sort == "-id" and (above := table.in_view().start):
            parts.append((f"{count(above)} newer above (g shows)", "dim"))
        return [span for part in parts for span in ((" · ", "dim"), part)][1:]

    # Marks freeze the order: what is being chosen from does not move.

    @on(JobTable.Marked)
    def _marked(self) -> None:
        if not (self.table.has_marks or self.frozen):
            self.hidden = 0
            self.standstill = None
            self.reread()
        elif not self.is_frozen:
            self.stand_still()
        self.catch_up()

    def freeze(self) -> None:
        """`u`: stop moving; pressed again, show what has changed, marks or not."""
        self.frozen = not self.is_frozen
        if self.frozen:
            self.stand_still()
        else:
            self.standstill = None
            self._thaw()
        self.catch_up()

    @work(exclusive=True, group="thaw", exit_on_error=False)
    async def _thaw(self) -> None:
        await self.guarded(self.read())
        if self.table.has_marks:
            self.stand_still()
        self.catch_up()

    def reread(self) -> None:
        """While it is frozen nothing is renewed: `u` shows what has changed."""
        if not self.is_frozen:
            super().reread()

    @property
    def words_for_the_header(self) -> str:
        return ""  # they stand below, with the marks

    @on(JobTable.AllWanted)
    def _mark_all(self) -> None:
        self.table.all_marked = self.table.pages.total > 0
        self.table.repaint()
        self._marked()

    @on(Table.Moved)
    def _moved(self, event: Table.Moved) -> None:
        event.stop()
        self.catch_up()

    @on(Table.Opened)
    def _opened(self, event: Table.Opened) -> None:
        event.stop()
        if (job := self.table.current) is not None:
            self.post_message(self.Go("job", job=job.id))

    def step_back(self) -> bool:
        if self.bar.is_open:
            self.bar.close()
        elif self.table.has_marks:
            self.table.unmark()
        elif self.bar.text:
            self.bar.apply("")
        else:
            return False
        return True

    @on(FilterBar.Left)
    def _back_to_table(self) -> None:
        self.table.focus()

    def first_focus(self) -> Widget:
        return self.table

    # Acting.

    @property
    def current_job(self) -> Job | None:
        return self.table.current

    def chosen_jobs(self) -> list[Job]:
        table = self.table
        if table.all_marked:
            return table.pages.known(table.in_view())
        return table.marked_jobs or super().chosen_jobs()

    def meant_table(self) -> Table:
        return self.table

    def selection(self) -> Selection | None:
        if self.table.all_marked:
            return Matching(where=self.list.where, number=self.table.pages.total)
        return super().selection()

    def hidden_jobs(self) -> int:
        return self.hidden

    def settled(self, intent: Intent, fate: Fate) -> None:
        """What was done loses its mark; what was not keeps it."""
        super().settled(intent, fate)
        if isinstance(intent.selection, Ids):
            self.table.unmark([int(one) for one in fate.done])
            self._recount()
        elif fate.word == "done":
            self.table.unmark()
        self.reread()

    @work(group="count", exclusive=True, exit_on_error=False)
    async def _recount(self) -> None:
        await self.guarded(self._count_hidden())
        self.catch_up()

    def action_filter(self) -> None:
        status = self.desk.mirror.status
        if status is not None:
            scheduled = sum(queue.scheduled or 0 for queue in status.queues)
            held = sum(queue.held for queue in status.queues)
            by_word = {word_of(state): number for state, number in status.states.items()}
            self.bar.known = {
                "state": {**by_word, **status.states, "scheduled": scheduled, "held": held},
                "queue": {queue.name: sum(queue.states.values()) for queue in status.queues},
                "node": {node.name: None for node in status.nodes},
            }
        self.bar.open()

    @work(group="dialog")
    async def action_sort(self) -> None:
        sort = await self.answer_to(Choice("Sort by", SORTS))
        if sort is not None:
            self._order_by(sort)

    def action_reverse(self) -> None:
        sort = self.list.sort
        self._order_by(sort[1:] if sort[0] == "-" else f"-{sort}")

    def _order_by(self, sort: str) -> None:
        self._sort = sort
        self._turn_to(replace(self.list, sort=sort))

    @work(group="dialog", exit_on_error=False)
    async def action_export(self) -> None:
        """Everything that is listed, as a file where the console was started."""
        kind = await self.answer_to(Choice("Export what is listed", FORMATS))
        if kind is None:
            return
        try:
            told = await export(self.desk.source, self.list, kind, self.desk.mirror.now())
        except RedriveError as problem:
            self.failed(problem)
        except OSError as problem:
            self.post_message(self.Said(f"could not write the export: {problem}", "error"))
        else:
            self.post_message(self.Said(told))
