"""One job: its timeline and what is to come, its output, arguments, error, events."""

from __future__ import annotations

from textual import on, work
from textual.app import ComposeResult
from textual.widget import Widget

from redrive.deciding.standing import retrying
from redrive.errors import NotFound, RedriveError
from redrive.lifecycle import LEASED
from redrive.models import Event, Job
from redrive.protocol.queries import EventPage, JobReply, ListEvents, LogReply, ReadLog, ShowJob
from redrive_tui import keys
from redrive_tui.formatting import Line, apart, count, state_word
from redrive_tui.job_cells import when
from redrive_tui.output_text import Lines, is_error
from redrive_tui.reading import args_lines, error_lines, event_lines, usage_line
from redrive_tui.sanitize import clean, coloured
from redrive_tui.screens.job_actions import JobActions
from redrive_tui.screens.pane import Desk
from redrive_tui.timeline import timeline
from redrive_tui.widgets.dialogs import Prompt
from redrive_tui.widgets.lines import Panel, TextView
from redrive_tui.widgets.stream_view import StreamView

TABS = ("timeline", "output", "args", "error", "events")


class JobPane(JobActions):
    context = "job"
    ALLOW_MAXIMIZE = True  # as a whole: its other lines say what one looks at
    BINDINGS = keys.bindings("tabs")

    DEFAULT_CSS = """
    JobPane #job-text, JobPane #job-output { height: 1fr; margin-top: 1; }
    JobPane #job-output { display: none; }
    JobPane.-output #job-output { display: block; }
    JobPane.-output #job-text { display: none; }
    """

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.job_id: int | None = None
        self.reply: JobReply | None = None
        self.events: list[Event] = []
        self._unread: Line = []  # why there is no reply
        self.tab = "timeline"
        self.top = Panel()
        self.text = TextView(id="job-text")
        self.output = StreamView[str](lambda line, _: [*coloured(line)], is_error, id="job-output")
        self._begin_output()

    def compose(self) -> ComposeResult:
        yield self.top
        yield self.text
        yield self.output

    def look_at(self, job: int, tab: str) -> None:
        """Show this job."""
        if job != self.job_id:
            self.job_id, self.reply, self.events, self._unread = job, None, [], []
            self._begin_output()
            self.output.search("")
            self.output.following = True
        self._turn_to(tab if tab in TABS else "timeline")
        self.reread()

    def _begin_output(self) -> None:
        self._offset = 0
        self._printed = Lines()
        self._log: LogReply | None = None
        self.output.restart()

    async def read(self) -> None:
        job = self.job_id
        if job is None:
            return
        source = self.desk.source
        try:
            reply: JobReply = await source.ask(ShowJob(id=job))
        except NotFound as gone:
            self._gone(job, gone)
            return
        events: EventPage = await source.ask(ListEvents(id=str(job), limit=10_000))
        if job == self.job_id:
            self.reply, self.events = reply, events.events
        if self.tab == "output":
            await self._read_output(job)

    def _gone(self, job: int, gone: NotFound) -> None:
        """It was discarded, or is kept no longer: what was shown of it is not true any more."""
        if job == self.job_id:
            self.reply, self.events, self._unread = None, [], [(clean(str(gone)), "error")]
            self._begin_output()

    async def _read_output(self, job: int) -> None:
        """What there is by now, to its end."""
        has_more = True
        while has_more:
            log: LogReply = await self.desk.source.ask(ReadLog(id=job, offset=self._offset))
            if job != self.job_id:
                return
            if self._log is not None and log.execution != self._log.execution:
                self._begin_output()  # a new attempt prints from the start
                continue
            has_more = bool(log.data) and log.offset < log.size
            self._log, self._offset = log, log.offset
            lines = self._printed.feed(log.data, finished=log.finished and not has_more)
            self.output.extend(lines)

    @property
    def current_job(self) -> Job | None:
        return self.reply.job if self.reply is not None else None

    # Showing.

    @property
    def knows(self) -> bool:
        """It says itself what it does not know."""
        return True

    def show(self) -> None:
        if self.reply is None:
            self.top.lines = [self._unread or [(f"reading job {self.job_id} ···", "dim")], []]
            self.text.lines = []
            return
        lines = [apart(self._title(), self._facts(), self.top.size.width), self._tabs()]
        if self.tab == "output" and self._log is not None and self._log.warning:
            lines.append([(clean(self._log.warning), "warning")])
        self.top.lines = lines
        self.output.empty = self._silence(self.reply.job)
        self.text.lines = self._page(self.reply, self.text.size.width - self.text.bar_width)

    def _title(self) -> Line:
        job = self.current_job
        if job is None:
            return []
        now, look = self.as_of, self.desk.look
        word = state_word(job, now)
        return [
            (f"{job.id}  {clean(job.task, 80)}  ", "strong"),
            (f"{look.glyph(word)} {standing(job, word)}", word),
            (f" {clean(job.reason, 40)}" if job.reason and word == "dead" else "", "dead"),
            ("  ", ""),
            *when(job, now, look, word),
        ]

    def _facts(self) -> Line:
        job = self.current_job
        if job is None:
            return []
        facts = [f"queue {job.queue}", f"priority {job.priority}"]
        facts += [f"run {job.run}"] if job.run else []
        facts += [f"batch {job.batch}"] if job.batch else []
        return [(clean(" · ".join(facts)), "dim")]

    def _tabs(self) -> Line:
        line: Line = []
        for tab in TABS:
            line += [(f" {tab} ", "tab" if tab == self.tab else "dim"), (" ", "")]
        return [*line, *self._output_status()] if self.tab == "output" else line

    def _silence(self, job: Job) -> str:
        """What there is to say of output that is empty."""
        if self._log is None:
            return "···"
        if self._log.warning:
            return ""
        return "nothing has been printed yet" if job.state is LEASED else "nothing was printed"

    def _output_status(self) -> Line:
        output, log = self.output, self._log
        following = "follow on" if output.following else f"follow off · {count(output.unseen)} new"
        line: Line = [(f"  attempt {log.execution}  " if log else "  ", "dim")]
        line.append((following, "good" if output.following else "warning"))
        if not output.is_whole:
            line.append((f"  only its last {count(len(output.items))} lines", "warning"))
        return [*line, ("  searched ", "dim"), (output.sought, "accent")] if output.sought else line

    def _page(self, reply: JobReply, width: int) -> list[Line]:
        now, look = self.as_of, self.desk.look
        match self.tab:
            case "args":
                return args_lines(reply.job)
            case "error":
                return error_lines(reply.job.error, look)
            case "events":
                return event_lines(self.events, now, look)
            case _:
                lines = timeline(reply, self.events, now, look, width)
                return [*lines, [], usage] if (usage := self._usage(reply.job)) else lines

    def _usage(self, job: Job) -> Line:
        vitals = self.desk.mirror.vitals.get(job.node or "", {}).get(job.id)
        return usage_line(vitals) if vitals is not None and job.state is LEASED else []

    # Tabs.

    @property
    def keys_context(self) -> str:
        return "output" if self.tab == "output" else self.context

    def action_tab(self, step: int) -> None:
        self._turn_to(TABS[(TABS.index(self.tab) + step) % len(TABS)])
        self.reread()

    def action_output(self) -> None:
        self._turn_to("output")
        self.reread()

    def _turn_to(self, tab: str) -> None:
        self.tab = tab
        self.set_class(tab == "output", "-output")
        self.text.action_first()
        self.show()
        self.first_focus().focus()

    def first_focus(self) -> Widget:
        return self.output if self.tab == "output" else self.text

    def _has_news(self) -> bool:
        """Printing is no event: a running job's output is looked at as often as news may be."""
        job = self.current_job
        prints = self.tab == "output" and job is not None and job.state is LEASED
        return super()._has_news() or (prints and self._is_due())

    @on(StreamView.Changed)
    def _changed(self) -> None:
        self.show()

    @on(StreamView.SearchWanted)
    @work(group="dialog")
    async def _search(self) -> None:
        text = await self.answer_to(Prompt("Search the output", self.output.sought))
        if text is not None:
            self.output.search(text)

    def step_back(self) -> bool:
        searched = self.tab == "output" and bool(self.output.sought)
        if searched:
            self.output.search("")
        return searched

    def failed(self, problem: RedriveError) -> None:
        self._unread = [(clean(str(problem)), "error")]
        super().failed(problem)


def standing(job: Job, word: str) -> str:
    """The word for its state; of one that has failed before, which retry this is."""
    retry = retrying(job.state, job.attempts, job.max_attempts)
    if retry is None or word == "held":
        return word
    return retry if word == "retrying" else f"{word}, {retry}"
