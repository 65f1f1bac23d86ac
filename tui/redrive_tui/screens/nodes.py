"""7 Nodes: where work is done, how much there is, and what each has in hand."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult

from redrive.models import Job
from redrive.protocol.queries import JobPage, ListJobs, LogReply, ReadLog
from redrive.protocol.rows import NodeRow
from redrive_tui import keys
from redrive_tui.acting import Intent
from redrive_tui.formatting import Line, duration, percent, seconds_between, size
from redrive_tui.job_cells import progress_words
from redrive_tui.job_list import term
from redrive_tui.liveness import liveness
from redrive_tui.output_text import last_line
from redrive_tui.sanitize import clean
from redrive_tui.screens.job_actions import JobActions
from redrive_tui.screens.pane import Desk
from redrive_tui.widgets.lines import Heading
from redrive_tui.widgets.table import Column, RecordTable, Table
from redrive_tui.wishes import Named

WIDE = 100  # with less, progress and output share a column
NODE_COLUMNS = [
    Column("NODE", 16),
    Column("BEAT", 10),
    Column("CPU", 15),
    Column("MEMORY", 20, from_width=78),
    Column("SLOTS", 7),
    Column("", 4, from_width=94),
    Column("QUEUES", 0, from_width=88),
    Column("UP", 7, right=True, from_width=103),
    Column("VERSION", 9, from_width=114),
]
JOB_COLUMNS = [
    Column("JOB", 8),
    Column("TASK", 20),
    Column("RAN", 8, right=True),
    Column("CPU", 5, right=True, from_width=60),
    Column("MEMORY", 7, right=True, from_width=90),
    Column("PROCS", 5, right=True, from_width=110),
    Column("BEAT", 8, right=True, from_width=96),
    Column("PROGRESS", 18, from_width=WIDE),
    Column("LAST OUTPUT", 0),
]
JOBS_SHOWN = 100
AT_FIRST = 20  # rows taken for in view before there is a view
TAIL = 1024  # bytes of output in which the last line is looked for


class NodesPane(JobActions):
    context = "nodes"
    BINDINGS = keys.bindings("node")

    DEFAULT_CSS = """
    NodesPane #node-list { height: auto; max-height: 50%; }
    NodesPane Heading { margin-top: 1; }
    """

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.nodes = RecordTable[NodeRow](
            NODE_COLUMNS,
            self._node_cells,
            lambda node: node.name,
            id="node-list",
            empty="no node has reported",
        )
        self.heading = Heading("RUNNING")
        self.running: list[Job] | None = None  # None: nobody has said yet
        self.said: dict[int, str] = {}  # the last line of output of those in view
        self.jobs = RecordTable[Job](
            JOB_COLUMNS, self._job_cells, lambda job: job.id, empty="nothing runs here"
        )

    def compose(self) -> ComposeResult:
        yield self.nodes
        yield self.heading
        yield self.jobs

    async def read(self) -> None:
        if not (name := self.node_name):
            return
        where = f"state:leased {term('node', name)}"
        page: JobPage = await self.desk.source.ask(ListJobs(where=where, limit=JOBS_SHOWN))
        said = {job.id: await self._last_line(job) for job in self._in_view(page.jobs)}
        if name == self.node_name:
            self.running, self.said = page.jobs, said

    @property
    def node_name(self) -> str:
        """Of the node under the cursor; empty while there is none."""
        return node.name if (node := self.nodes.current) is not None else ""

    def _in_view(self, jobs: list[Job]) -> list[Job]:
        top = self.jobs.scroll_offset.y
        return jobs[top : top + (self.jobs.size.height or AT_FIRST)]

    async def _last_line(self, job: Job) -> str:
        log: LogReply = await self.desk.source.ask(ReadLog(id=job.id, tail=True, limit=TAIL))
        return log.warning or last_line(log.data)

    def _has_news(self) -> bool:
        """Printing is no event: while something runs, it is looked at as often as news may be."""
        return super()._has_news() or (bool(self.running) and self._is_due())

    @property
    def knows(self) -> bool:
        """The nodes come with the status; what they run is read for the one under the cursor."""
        return self.desk.mirror.status is not None

    def show(self) -> None:
        status = self.desk.mirror.status
        if status is not None:
            self.nodes.show(status.nodes)
        node = self.nodes.current
        if self.running is None:
            self.jobs.forget()
        else:
            self.jobs.show(self.running)
        self.heading.title = self._heading(node)

    def _heading(self, node: NodeRow | None) -> str:
        """Whose jobs they are; and which of them is meant, while the cursor is on the nodes."""
        title = f"RUNNING ON {clean(node.name, 40)}" if node else "RUNNING"
        job = self.current_job
        if job is None or not self.nodes.has_focus:
            return title
        return f"{title} · keys for jobs mean {job.id}"

    @on(RecordTable.Moved, "#node-list")
    def _another(self) -> None:
        self.running = None
        self.reread()

    def _node_cells(self, node: NodeRow) -> list[Line]:
        now, look = self.as_of, self.desk.look
        cpu = list(self.desk.mirror.cpu.get(node.name, ()))
        age = duration(seconds_between(node.beat_at, now))
        state = liveness(node, now)
        fresh = state == "fresh"
        share = node.memory / node.memory_total if node.memory and node.memory_total else 0.0
        memory = f"{size(node.memory or 0)}/{size(node.memory_total or 0)}"
        beat: Line = [(age, "text")]
        if not fresh:
            beat = [(f"{state.upper()} {age}", _ALARM[state])]
        elif node.state == "draining":
            beat = [("draining", "warning")]
        welcome = self.desk.mirror.welcome
        differs = welcome is not None and node.version != welcome.program
        return [
            [(clean(node.name, 80), "strong"), (" leader" if node.leader else "", "dim")],
            beat,
            [
                (look.sparkline(cpu, 8, top=1.0), "spark" if fresh else "dim"),
                (f" {percent(cpu[-1]) if cpu and fresh else '?':>5}", "text"),
            ],
            [(f"{memory:<11} ", "text" if fresh else "dim"), *look.bar(share, 7)],
            [(f"{node.busy}{'' if fresh else '?'}/{node.slots}", "text")],
            look.bar(node.busy / node.slots, 4) if node.slots and fresh else [],
            [(clean(", ".join(node.queues)), "dim")],
            [(duration(seconds_between(node.started_at, now)), "dim")],
            [(clean(node.version, 40), "dim"), (" !" if differs else "", "warning")],
        ]

    def _job_cells(self, job: Job) -> list[Line]:
        now = self.as_of
        vitals = self.desk.mirror.vitals.get(job.node or "", {}).get(job.id)
        cpu = vitals.cpu if vitals is not None else None
        memory = vitals.memory if vitals is not None else None
        children = vitals.children if vitals is not None else None
        ran = seconds_between(job.started_at, now) if job.started_at is not None else None
        beat = seconds_between(job.heartbeat_at, now) if job.heartbeat_at is not None else None
        progress = progress_words(job.progress)
        said: Line = [(clean(self.said.get(job.id, ""), 300), "dim")]
        if progress and self.jobs.size.width < WIDE:
            said = [(f"{progress}  ", "text"), *said]
        return [
            [(str(job.id), "strong")],
            [(clean(job.task, 80), "text")],
            [(duration(ran) if ran is not None else "in hand", "running")],
            [(percent(cpu / 100) if cpu is not None else "-", "text")],
            [(size(memory) if memory is not None else "-", "text")],
            [(str(children + 1) if children is not None else "-", "text")],
            [(duration(beat) if beat is not None else "-", "dim")],
            [(progress, "text")],
            said,
        ]

    @on(RecordTable.Opened)
    def _opened(self, event: RecordTable.Opened) -> None:
        event.stop()
        if event.table is self.nodes and (node := self.nodes.current):
            self.post_message(self.Go("jobs", filter=f"state:leased {term('node', node.name)}"))
        elif (job := self.jobs.current) is not None:
            self.post_message(self.Go("job", job=job.id))

    @property
    def current_job(self) -> Job | None:
        """What is done to jobs here is done to the one under their cursor, whoever has the keys."""
        return self.jobs.current

    def meant_table(self) -> Table:
        return self.jobs

    def action_drain(self) -> None:
        if (node := self.nodes.current) is not None:
            selection = Named(kind="node", name=node.name)
            self.ask(Intent(verb="drain", selection=selection), self.nodes)


_ALARM = {"late": "warning", "lost": "error", "stopped": "dim"}
