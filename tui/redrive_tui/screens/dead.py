"""3 Dead: a thousand failures are three causes; the causes come first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal, get_args

from msgspec import structs
from textual import on
from textual.app import ComposeResult

from redrive.protocol.queries import GroupPage, ListGroups, ListRedrives, RedrivePage
from redrive.protocol.rows import GroupRow, RedriveRow
from redrive_tui import keys
from redrive_tui.acting import Intent
from redrive_tui.formatting import Line, apart, count, plural, span
from redrive_tui.job_list import term
from redrive_tui.reading import guidance_lines
from redrive_tui.sanitize import clean
from redrive_tui.screens.pane import Desk, Pane
from redrive_tui.widgets.lines import Heading, Panel
from redrive_tui.widgets.table import Column, RecordTable
from redrive_tui.wishes import Matching, Named

Grouping = Literal["error", "task", "queue"]
GROUPINGS: tuple[Grouping, ...] = get_args(Grouping)
HOURS = 24

COLUMNS = [
    Column("COUNT", 7, right=True),
    Column("LAST", 5, right=True),
    Column("CAUSE", 0),
    Column("TASKS", 20, from_width=90),
    Column("FIRST SEEN", 12, from_width=100),
    Column("LAST 24 HOURS", HOURS, from_width=120),
]
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
        self.groups: list[GroupRow] = []
        self.top = Panel()
        self.guidance = Panel(id="dead-guidance")
        self.table = RecordTable[GroupRow](
            COLUMNS,
            self._cells,
            lambda group: group.fingerprint,
            id="dead-groups",
            empty="no dead jobs",
        )

        self.running: list[RedriveRow] = []
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
        page: GroupPage = await self.desk.source.ask(ListGroups())
        redrives: RedrivePage = await self.desk.source.ask(ListRedrives())
        self.groups = page.groups
        self.running = [row for row in redrives.redrives if row.finished_at is None]

    def show(self) -> None:
        rows = regrouped(self.groups, self.by)
        self.table.show(rows)
        self.redrives.show(self.running)
        self.set_class(bool(self.running), "-redriving")
        dead = sum(group.dead for group in self.groups)
        noun = "cause" if self.by == "error" else self.by
        left: Line = [
            (f"{count(dead)} dead", "dead" if dead else "text"),
            (f"  {plural(len(rows), noun)}", "text"),
        ]
        right: Line = [("by ", "dim")]
        for grouping in GROUPINGS:
            right.append((f" {grouping} ", "tab" if grouping == self.by else "dim"))
        self.top.lines = [apart(left, right, self.top.size.width)]
        self._advise()

    @on(RecordTable.Moved, "#dead-groups")
    def _advise(self) -> None:
        group = self.table.current
        self.guidance.lines = guidance_lines(group, self.desk.mirror.as_of) if group else []

    def _cells(self, group: GroupRow) -> list[Line]:
        now, look = self.desk.mirror.as_of, self.desk.look
        cause = group.signature or group.error_type
        tasks = sorted(group.tasks, key=lambda task: -group.tasks[task])
        others = f" +{len(tasks) - 1}" if len(tasks) > 1 else ""
        return [
            [(count(group.dead), "dead")],
            [(span((now - group.last_at) / 1e6), "text")],
            [(f"{look.glyph('dead')} ", "dead"), (clean(cause), "text")],
            [(clean(tasks[0], 80) if tasks else "-", "text"), (others, "dim")],
            [(look.moment(group.first_at, now), "dim")],
            [(look.sparkline(group.trend, HOURS), "dead")],
        ]

    def _redrive_cells(self, row: RedriveRow) -> list[Line]:
        look = self.desk.look
        worked_off = row.requeued + row.skipped
        ended: Line = [(f"{look.glyph('done')} {count(row.succeeded)}  ", "done")]
        ended.append((f"{look.glyph('dead')} {count(row.failed)}", "dead" if row.failed else "dim"))
        return [
            [(f"redrive {row.id}", "strong")],
            [(clean(row.state, 40), "accent" if row.state == "running" else "warning")],
            [*look.bar(worked_off / max(1, row.total), 10)],
            [(f"{count(worked_off)}/{count(row.total)}", "text")],
            ended,
            [(f"by {clean(row.by, 40)}  {clean(row.where or '', 120)}", "dim")],
        ]

    def filter_of(self, group: GroupRow) -> str:
        """The filter that finds the dead jobs of a row."""
        key = "group" if self.by == "error" else self.by
        return f"state:dead {term(key, group.fingerprint)}"

    @on(RecordTable.Opened, "#dead-groups")
    def _opened(self, event: RecordTable.Opened) -> None:
        event.stop()
        if (group := self.table.current) is not None:
            self.post_message(self.Go("jobs", filter=self.filter_of(group)))

    def action_tab(self, step: int) -> None:
        place = GROUPINGS.index(self.by) + step
        self.by = GROUPINGS[place % len(GROUPINGS)]
        self.catch_up()

    def action_act(self, verb: str) -> None:
        """A whole group at once: never without its number typed."""
        if (group := self.table.current) is not None:
            selection = Matching(where=self.filter_of(group), number=group.dead)
            self.ask(Intent(verb=verb, selection=selection, whole=group.dead > 1))

    def action_steer(self, verb: str) -> None:
        """The redrive under the cursor, or the only one there is."""
        if (row := self.redrives.current) is not None:
            self.ask(Intent(verb=verb, selection=Named(kind="redrive", name=str(row.id))))

    def action_copy(self) -> None:
        if (group := self.table.current) is not None:
            self.post_message(self.Copied(group.fingerprint))

    def visit(self, filter: str) -> None:
        for word in filter.split():
            if word.startswith("group:"):
                self.table.move_to(word.removeprefix("group:"))


def regrouped(groups: Iterable[GroupRow], by: Grouping) -> list[GroupRow]:
    """The groups by cause, or the same dead jobs by task or by queue; the largest first."""
    if by == "error":
        return sorted((group for group in groups if group.dead), key=lambda group: -group.dead)
    dead: Counter[str] = Counter()
    rows: dict[str, GroupRow] = {}
    for group in groups:
        for name, number in (group.tasks if by == "task" else group.queues).items():
            dead[name] += number
            known = rows.get(name)
            if known is None or known.last_at < group.last_at:
                rows[name] = group
    return [
        structs.replace(rows[name], fingerprint=name, dead=number, retrying=0)
        for name, number in dead.most_common()
    ]
