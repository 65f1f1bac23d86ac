"""3 Dead: a thousand failures are three causes; the causes come first."""

from __future__ import annotations

from typing import Literal, get_args

from textual import on
from textual.app import ComposeResult

from redrive.event_words import skips_in_words
from redrive.filters import Match, parse
from redrive.protocol.queries import GroupPage, ListGroups, ListRedrives, RedrivePage
from redrive.protocol.rows import GroupRow, RedriveRow
from redrive_tui import keys
from redrive_tui.acting import Intent
from redrive_tui.formatting import Line, apart, count, plural, seconds_between, span
from redrive_tui.job_list import term
from redrive_tui.reading import guidance_lines
from redrive_tui.sanitize import clean
from redrive_tui.screens.pane import Desk, Pane
from redrive_tui.widgets.lines import Heading, Panel
from redrive_tui.widgets.table import Column, RecordTable
from redrive_tui.wishes import Matching, Named

Grouping = Literal["error", "task", "queue", "node", "day"]
GROUPINGS: tuple[Grouping, ...] = get_args(Grouping)
HOURS = 24
TOLD_FOR = 300.0  # seconds after its end that a redrive is still listed

COLUMNS = [
    Column("COUNT", 7, right=True),
    Column("LAST", 5, right=True),
    Column("CAUSE", 0),
    Column("TASKS", 20, from_width=90),
    Column("FIRST SEEN", 12, from_width=100),
    Column("LAST 24 HOURS", HOURS, from_width=120),
]


def named_columns(by: Grouping) -> list[Column]:
    """The same jobs by something that has a name."""
    name, cause = Column("DAY (UTC)" if by == "day" else by.upper(), 20), Column("MAIN CAUSE", 0)
    return [*COLUMNS[:2], name, cause, *COLUMNS[4:]]


REDRIVE_COLUMNS = [
    Column("REDRIVE", 12),
    Column("STATE", 9),
    Column("", 10, from_width=70),
    Column("REQUEUED", 13),
    Column("ENDED", 16),
    Column("", 0, from_width=90),
]


class DeadPane(Pane):
    context = "dead"
    BINDINGS = keys.bindings("tabs", "group", "redrive")

    DEFAULT_CSS = """
    DeadPane RecordTable { margin-top: 1; }
    DeadPane #dead-redrives { height: auto; max-height: 6; margin-top: 0; display: none; }
    DeadPane.-redriving #dead-redrives { display: block; }
    DeadPane #dead-guidance { min-height: 4; max-height: 40%; }
    """

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.by: Grouping = "error"
        self.groups: list[GroupRow] | None = None  # None: nobody has said yet
        self._wanted = ""  # where the cursor is to go once it is there
        self.top = Panel()
        self.guidance = Panel(id="dead-guidance")
        self.table = RecordTable[GroupRow](
            COLUMNS,
            self._cells,
            _key,
            id="dead-groups",
            empty="no dead jobs",
        )

        self.latest: list[RedriveRow] = []
        self.redrives = RecordTable[RedriveRow](
            REDRIVE_COLUMNS, self._redrive_cells, lambda row: row.id, id="dead-redrives"
        )

    def compose(self) -> ComposeResult:
        yield self.top
        yield self.table
        yield self.redrives
        yield Heading("GUIDANCE")
        yield self.guidance

    async def read(self) -> None:
        by = self.by
        where = "" if by == "error" else "state:dead"
        page: GroupPage = await self.desk.source.ask(ListGroups(where=where, by=by))
        redrives: RedrivePage = await self.desk.source.ask(ListRedrives())
        if by == self.by:
            self.groups = page.groups
        self.latest = redrives.redrives

    def show(self) -> None:
        if self.groups is None:
            self.table.forget()
        else:
            self.table.show([group for group in self.groups if group.dead])
            self._seek()
        redrives = [row for row in self.latest if self._is_told_of(row)]
        self.redrives.show(redrives)
        self.set_class(bool(redrives), "-redriving")
        status = self.desk.mirror.status
        dead = status.states.get("dead", 0) if status is not None else 0
        noun = "cause" if self.by == "error" else self.by
        left: Line = [(f"{count(dead)} dead", "dead" if dead else "text")]
        if self.groups is not None:
            left.append((f"  {plural(self.table.row_count(), noun)}", "text"))
        right: Line = [("by ", "dim")]
        for grouping in GROUPINGS:
            right.append((f" {grouping} ", "tab" if grouping == self.by else "dim"))
        self.top.lines = [apart(left, right, self.top.size.width)]
        self._advise()

    @on(RecordTable.Moved, "#dead-groups")
    def _advise(self) -> None:
        group = self.table.current
        self.guidance.lines = guidance_lines(group, self.as_of) if group else []

    def _cells(self, group: GroupRow) -> list[Line]:
        now, look = self.as_of, self.desk.look
        cause: Line = [
            (f"{look.glyph('dead')} ", "dead"),
            (clean(group.signature or group.error_type), "text"),
        ]
        if group.name:
            others = f" +{group.errors - 1}" if group.errors > 1 else ""
            about: list[Line] = [[(clean(group.name, 80), "strong")], [*cause, (others, "dim")]]
        else:
            about = [cause, self._tasks(group)]
        return [
            [(count(group.dead), "dead")],
            [(span(seconds_between(group.last_at, now)), "text")],
            *about,
            [(look.moment(group.first_at, now), "dim")],
            [(look.sparkline(group.trend, HOURS), "dead")],
        ]

    def _tasks(self, group: GroupRow) -> Line:
        tasks = sorted(group.tasks, key=lambda task: -group.tasks[task])
        others = f" +{len(tasks) - 1}" if len(tasks) > 1 else ""
        return [(clean(tasks[0], 80) if tasks else "-", "text"), (others, "dim")]

    def _is_told_of(self, row: RedriveRow) -> bool:
        """While it is under way; and for a while how it ended, which is often by its canary."""
        return row.finished_at is None or seconds_between(row.finished_at, self.as_of) < TOLD_FOR

    def _redrive_cells(self, row: RedriveRow) -> list[Line]:
        look = self.desk.look
        worked_off = row.requeued + row.skipped
        why = row.why or skips_in_words(row.skips)
        ended: Line = [(f"{look.glyph('done')} {count(row.succeeded)}  ", "done")]
        ended.append((f"{look.glyph('dead')} {count(row.failed)}", "dead" if row.failed else "dim"))
        return [
            [(f"redrive {row.id}", "strong")],
            [(clean(row.state, 40), "accent" if row.state == "running" else "warning")],
            [*look.bar(worked_off / max(1, row.total), 10)],
            [(f"{count(worked_off)}/{count(row.total)}", "text")],
            ended,
            [
                (f"{clean(why, 120)}  " if why else "", "warning"),
                (f"by {clean(row.by, 40)}  {clean(row.where or '', 120)}", "dim"),
            ],
        ]

    def filter_of(self, group: GroupRow) -> str:
        """The filter that finds the dead jobs of a row."""
        key = self.by if group.name else "group"
        return f"state:dead {term(key, _key(group))}"

    @on(RecordTable.Opened, "#dead-groups")
    def _opened(self, event: RecordTable.Opened) -> None:
        event.stop()
        if (group := self.table.current) is not None:
            self.post_message(self.Go("jobs", filter=self.filter_of(group)))

    def action_tab(self, step: int) -> None:
        place = GROUPINGS.index(self.by) + step
        self._turn_to(GROUPINGS[place % len(GROUPINGS)])

    def _turn_to(self, by: Grouping) -> None:
        if by != self.by:
            self.by = by
            self.groups = None
            self.table.columns = list(COLUMNS) if by == "error" else named_columns(by)
            self.catch_up()
            self.reread()

    def action_act(self, verb: str) -> None:
        """A whole group at once: never without its number typed."""
        if (group := self.table.current) is None:
            self.post_message(self.Said("there is no cause under the cursor"))
            return
        selection = Matching(where=self.filter_of(group), number=group.dead)
        self.ask(Intent(verb=verb, selection=selection, whole=group.dead > 1))

    def action_steer(self, verb: str) -> None:
        """The redrive under the cursor, or the only one there is."""
        if (row := self.redrives.current) is None:
            self.post_message(self.Said("no redrive is under way"))
            return
        selection = Named(kind="redrive", name=str(row.id))
        self.ask(Intent(verb=verb, selection=selection), self.redrives)

    def action_copy(self) -> None:
        if (group := self.table.current) is not None:
            self.post_message(self.Copied(_key(group)))

    def visit(self, filter: str) -> None:
        """To the group that the filter means, by whatever it names."""
        for condition in parse(filter).terms:
            match condition:
                case Match(key="group", words=((name,),)):
                    self._turn_to("error")
                    self._wanted = name
                case Match(key="task" | "queue" | "node" | "day" as by, words=((name,),)):
                    self._turn_to(by)
                    self._wanted = name
                case _:
                    pass
        self._seek()

    def _seek(self) -> None:
        if self._wanted and self.groups:
            self.table.move_to(self._wanted)
            self._wanted = ""


def _key(group: GroupRow) -> str:
    return group.name or group.fingerprint
