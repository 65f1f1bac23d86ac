"""1 Overview: the queues, what needs a person, what falls due next, the nodes."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from redrive.clock import SECOND
from redrive.protocol.rows import Attention, DueRow, NodeRow, QueueRow
from redrive_tui.formatting import Line, duration, percent, plural, seconds_between, size
from redrive_tui.job_list import term
from redrive_tui.liveness import liveness
from redrive_tui.sanitize import clean
from redrive_tui.screens.pane import Desk, Pane
from redrive_tui.screens.queues import QUEUE_COLUMNS, queue_cells
from redrive_tui.widgets.lines import Heading
from redrive_tui.widgets.table import Column, RecordTable

SOON = 15 * 60 * SECOND
NODE_COLUMNS = [
    Column("", 14),
    Column("", 10),
    Column("", 16),
    Column("", 12, from_width=74),
    Column("", 0),
]


class OverviewPane(Pane):
    context = "overview"

    DEFAULT_CSS = """
    OverviewPane #overview-queues { height: auto; max-height: 50%; }
    OverviewPane #overview-middle { height: 1fr; min-height: 4; margin-top: 1; }
    OverviewPane #overview-attention { width: 3fr; height: 1fr; }
    OverviewPane #overview-due { width: 2fr; height: 1fr; margin-left: 2; }
    OverviewPane #overview-nodes { height: auto; max-height: 6; }
    """

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.queues = RecordTable[QueueRow](
            QUEUE_COLUMNS,
            lambda row: queue_cells(row, self.desk, self.as_of),
            lambda row: row.name,
            id="overview-queues",
            empty="no queue has been used yet",
        )
        self.attention = RecordTable[Attention](
            [Column("", 0)],
            self._attention_cells,
            lambda one: (one.kind, one.where),
            header=False,
            empty="nothing needs attention",
        )
        self.due = RecordTable[DueRow](
            [Column("", 8), Column("", 0)],
            self._due_cells,
            lambda due: (due.at, due.kind, due.name),
            header=False,
            empty="nothing falls due",
        )
        self.nodes = RecordTable[NodeRow](
            NODE_COLUMNS,
            self._node_cells,
            lambda node: node.name,
            id="overview-nodes",
            header=False,
            empty="no node has reported",
        )
        for table in (self.queues, self.attention, self.due, self.nodes):
            table.points = False  # four of them at once would be noise

    def compose(self) -> ComposeResult:
        yield self.queues
        with Horizontal(id="overview-middle"):
            with Vertical(id="overview-attention"):
                yield Heading("NEEDS ATTENTION")
                yield self.attention
            with Vertical(id="overview-due"):
                yield Heading("NEXT 15 MINUTES")
                yield self.due
        yield Heading("NODES", id="overview-nodes-heading")
        yield self.nodes

    def show(self) -> None:
        mirror = self.desk.mirror
        status = mirror.status
        if status is None:
            return
        now = self.as_of
        self.queues.show(status.queues)
        self.attention.show(status.attention)
        self.due.show([due for due in status.due if due.at - now <= SOON])
        self.nodes.show(status.nodes)

    def _attention_cells(self, one: Attention) -> list[Line]:
        mark = self.desk.look.glyph("dead") if one.severity == "error" else "!"
        return [[(f"{mark} ", one.severity), (clean(one.text), "text")]]

    def _due_cells(self, due: DueRow) -> list[Line]:
        look, name = self.desk.look, clean(due.name, 80)
        match due.kind:
            case "retry":
                what = (f"{look.glyph('retrying')} {plural(due.n, 'retry', 'retries')}", "retrying")
            case "scheduled":
                what = (f"{look.glyph('scheduled')} {plural(due.n, 'job')}", "scheduled")
            case "schedule" | "gate":
                return [
                    [(look.time(due.at), "dim")],
                    [(f"{look.glyph('scheduled')} {name}", "scheduled")],
                ]
        return [[(look.time(due.at), "dim")], [what, (f" in {name}", "dim")]]

    def _node_cells(self, node: NodeRow) -> list[Line]:
        now, look = self.as_of, self.desk.look
        name: Line = [(clean(node.name, 40), "strong")]
        state = liveness(node, now)
        cpu = list(self.desk.mirror.cpu.get(node.name, ()))
        if state != "fresh":
            age = duration(seconds_between(node.beat_at, now))
            late: Line = [(f"{state.upper()} {age}", "error" if state == "lost" else "warning")]
            return [name, late, [], [], [(f"{node.busy}? running", "dim")]]
        memory = size(node.memory) if node.memory is not None else "-"
        total = f"/{size(node.memory_total)}" if node.memory_total else ""
        return [
            name,
            [(clean(node.state, 40), "good" if node.state == "up" else "warning")],
            [
                ("cpu ", "dim"),
                (look.sparkline(cpu, 6, top=1.0), "spark"),
                (f" {percent(cpu[-1]) if cpu else '-'}", "text"),
            ],
            [(f"{memory}{total}", "text")],
            [(f"{node.busy}/{node.slots} running", "text")],
        ]

    @on(RecordTable.Opened)
    def open_row(self, event: RecordTable.Opened) -> None:
        event.stop()
        if event.table is self.queues and (queue := self.queues.current):
            self.post_message(self.Go("jobs", filter=term("queue", queue.name)))
        elif event.table is self.attention and (one := self.attention.current):
            self.post_message(self.Go(one.screen, filter=one.where))
        elif event.table is self.due and (due := self.due.current):
            self._open_due(due)
        elif event.table is self.nodes:
            self.post_message(self.Go("nodes"))

    def _open_due(self, due: DueRow) -> None:
        match due.kind:
            case "schedule":
                self.post_message(self.Go("schedules"))
            case "gate":
                self.post_message(self.Go("runs"))
            case "retry":
                self.post_message(
                    self.Go("jobs", filter=f"state:retry {term('queue', due.name)} sort:next")
                )
            case "scheduled":
                self.post_message(
                    self.Go("jobs", filter=f"state:scheduled {term('queue', due.name)} sort:next")
                )
