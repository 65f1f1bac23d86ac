"""6 Schedules: what starts by itself, when next, and how the last times went."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult

from redrive.protocol.queries import ListSchedules, SchedulePage
from redrive.protocol.rows import FireRow, ScheduleRow
from redrive_tui import keys
from redrive_tui.acting import Intent
from redrive_tui.formatting import Line, Span, duration, until, word_of
from redrive_tui.job_list import term
from redrive_tui.sanitize import clean
from redrive_tui.screens.pane import Desk, Pane
from redrive_tui.widgets.lines import Heading, Panel
from redrive_tui.widgets.table import Column, RecordTable
from redrive_tui.wishes import Named

COLUMNS = [
    Column("SCHEDULE", 18),
    Column("WHEN", 0),
    Column("NEXT", 18),
    Column("LAST RUN", 24, from_width=104),
    Column("LAST 8", 8, from_width=70),
    Column("OVERLAP", 7, from_width=110),
    Column("STATE", 6),
]


class SchedulesPane(Pane):
    context = "schedules"
    BINDINGS = keys.bindings("pausable", "schedule")

    DEFAULT_CSS = """
    SchedulesPane Panel { max-height: 40%; }
    """

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.schedules: list[ScheduleRow] = []
        self.table = RecordTable[ScheduleRow](
            COLUMNS, self._cells, lambda row: row.name, empty="no schedule is configured"
        )
        self.detail = Panel()

    def compose(self) -> ComposeResult:
        yield self.table
        yield Heading("NEXT FIRES")
        yield self.detail

    async def read(self) -> None:
        page: SchedulePage = await self.desk.source.ask(ListSchedules())
        self.schedules = page.schedules

    def show(self) -> None:
        self.table.show(self.schedules)
        self._describe()

    def _cells(self, row: ScheduleRow) -> list[Line]:
        now, look = self.as_of, self.desk.look
        next_at: Line = [("-", "dim")]
        if row.next and not row.paused:
            next_at = [
                (f"{look.moment(row.next[0], now)} ", "text"),
                (until(row.next[0], now), "dim"),
            ]
        return [
            [(clean(row.name, 80), "strong")],
            [(clean(row.words, 80), "text")],
            next_at,
            self._last(row, now),
            [self._mark(fire) for fire in row.last[-8:]],
            [(clean(row.overlap, 40), "dim")],
            [("PAUSED", "warning")] if row.paused else [("on", "good")],
        ]

    def _last(self, row: ScheduleRow, now: int) -> Line:
        if not row.last:
            return [("never", "dim")]
        fire = row.last[-1]
        took = f" took {duration(fire.took)}" if fire.took is not None else ""
        return [self._mark(fire), (f" {self.desk.look.moment(fire.at, now)}{took}", "text")]

    def _mark(self, fire: FireRow) -> Span:
        if fire.outcome != "fired":
            return (self.desk.look.glyph("cancelled"), "warning")
        word = word_of(fire.state or "queued")
        return (self.desk.look.glyph(word), word)

    @on(RecordTable.Moved)
    def _describe(self) -> None:
        row = self.table.current
        self.detail.lines = self._details(row) if row is not None else []

    def _details(self, row: ScheduleRow) -> list[Line]:
        look, now = self.desk.look, self.as_of
        facts = f"starts {clean(row.what, 80)} · zone {clean(row.timezone, 40)} · missed: {clean(row.missed, 40)}"
        lines: list[Line] = [[(clean(row.name, 80), "strong"), (f"  {facts}", "dim")]]
        if row.paused:
            since = f" since {look.moment(row.paused_at, now)}" if row.paused_at else ""
            who = f" by {clean(row.paused_by, 80)}" if row.paused_by else ""
            why = f': "{clean(row.paused_why, 200)}"' if row.paused_why else ""
            said = f"{since}{who}{why}; it fires again once resumed"
            lines.append([("PAUSED", "warning"), (said, "text")])
        lines += [
            [(f"  {look.absolute(at)}", "text"), (f"  {until(at, now)}", "dim")]
            for at in ([] if row.paused else row.next[:5])
        ]
        lines += [
            [(f"  {look.absolute(fire.slot)}", "dim"), (f"  {clean(fire.outcome, 40)}", "warning")]
            for fire in row.last[-8:]
            if fire.outcome != "fired"
        ]
        return lines

    @on(RecordTable.Opened)
    def _opened(self, event: RecordTable.Opened) -> None:
        event.stop()
        if (row := self.table.current) is not None:
            kind, _, name = row.what.partition(" ")
            if kind == "task":
                self.post_message(self.Go("jobs", filter=term("task", name)))
            else:
                self.post_message(self.Go("runs"))

    def action_act(self, verb: str) -> None:
        if (row := self.table.current) is not None:
            self.ask(Intent(verb=verb, selection=Named(kind="schedule", name=row.name)))
