"""5 Queues: how full, how old, how fast; pause, resume, discard what is dead."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult

from redrive.protocol.rows import QueueRow
from redrive_tui import keys
from redrive_tui.acting import Intent
from redrive_tui.formatting import (
    Line,
    Look,
    Span,
    count,
    duration,
    per_minute,
    percent,
    plural,
    seconds_between,
)
from redrive_tui.job_list import term
from redrive_tui.sanitize import clean
from redrive_tui.screens.pane import Desk, Pane
from redrive_tui.throughput import BUCKETS, Throughput
from redrive_tui.widgets.lines import Heading, Panel
from redrive_tui.widgets.table import Column, RecordTable
from redrive_tui.wishes import Matching, Named

SPARK = 20
ALARMING = 0.05  # of what ended lately, this share died

QUEUE_COLUMNS = [
    Column("QUEUE", 0),
    Column("READY", 8, right=True),
    Column("RUN/LIMIT", 9, right=True, from_width=44),
    Column("", 6, from_width=50),
    Column("SCHEDULED", 9, right=True, from_width=130),
    Column("RETRYING", 8, right=True, from_width=60),
    Column("DEAD", 7, right=True),
    Column("OLDEST", 7, right=True, from_width=80),
    Column("LAST 5 MINUTES", SPARK, from_width=110),
    Column("", 9, right=True, from_width=100),
    Column("DIED", 6, right=True, from_width=116),
]


def queue_cells(queue: QueueRow, desk: Desk, now: int) -> list[Line]:
    """A queue as a row, here and on the overview."""
    look = desk.look
    throughput = desk.mirror.throughput.get(queue.name)
    limit = "-" if queue.concurrency is None else str(queue.concurrency)
    dead, later = queue.states.get("dead", 0), queue.scheduled or 0
    waits = seconds_between(queue.oldest_ready_at, now) if queue.oldest_ready_at else 0.0
    rate = throughput.per_minute if throughput else None
    died = throughput.died_share if throughput else None
    return [
        [_activity(queue, look), (clean(queue.name, 80), "strong")],
        [(count(queue.ready), "text" if queue.ready else "dim")],
        [(f"{queue.running}/{limit}", "text" if queue.running else "dim")],
        _used(queue, look),
        [(count(later), "scheduled" if later else "dim")],
        [(count(queue.retrying), "retrying" if queue.retrying else "dim")],
        [(count(dead), "dead" if dead else "dim")],
        [(duration(waits) if waits > 0 else "-", "text" if waits > 0 else "dim")],
        [(look.sparkline(_finished(throughput), SPARK), "spark")],
        [(per_minute(rate) if rate is not None else "-", "dim")],
        [(percent(died), "dead" if died >= ALARMING else "dim")]
        if died is not None
        else [("-", "dim")],
    ]


def _used(queue: QueueRow, look: Look) -> Line:
    """How much of its limit is used; of one that takes nothing, that it is paused."""
    if queue.paused:
        return [("PAUSED", "warning")]
    return look.bar(queue.running / queue.concurrency, 6) if queue.concurrency else []


def _activity(queue: QueueRow, look: Look) -> Span:
    if queue.paused:
        return f"{look.glyph('held')} ", "warning"
    return (f"{look.glyph('running')} ", "running") if queue.running else ("  ", "")


def _finished(throughput: Throughput | None) -> list[float | None]:
    """Jobs that ended well, in as many steps as there are cells."""
    if throughput is None:
        return []
    amounts = throughput.done.amounts()
    per_cell = BUCKETS // SPARK
    pieces = [amounts[at : at + per_cell] for at in range(0, BUCKETS, per_cell)]
    return [
        float(sum(amount or 0 for amount in piece))
        if any(each is not None for each in piece)
        else None
        for piece in pieces
    ]


class QueuesPane(Pane):
    context = "queues"
    BINDINGS = keys.bindings("pausable", "queue")

    DEFAULT_CSS = """
    QueuesPane Panel { margin: 0 0 1 0; }
    """

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.table = RecordTable[QueueRow](
            QUEUE_COLUMNS,
            lambda row: queue_cells(row, self.desk, self.as_of),
            lambda row: row.name,
            empty="no queue has been used yet",
        )
        self.detail = Panel()

    def compose(self) -> ComposeResult:
        yield self.table
        yield Heading("LIMITS")
        yield self.detail

    def show(self) -> None:
        status = self.desk.mirror.status
        if status is not None:
            self.table.show(status.queues)
            self._describe()

    @on(RecordTable.Moved)
    def _describe(self) -> None:
        queue = self.table.current
        self.detail.lines = self._details(queue) if queue is not None else []

    def _details(self, queue: QueueRow) -> list[Line]:
        look, now = self.desk.look, self.as_of
        limits = [f"priority {queue.priority}", f"{plural(queue.reserved, 'slot')} reserved"]
        limits.append(f"at most {queue.concurrency} at once" if queue.concurrency else "no limit")
        limits += [f"at most {queue.rate}"] if queue.rate else []
        lines: list[Line] = [
            [(clean(queue.name, 80), "strong"), (f"  {' · '.join(limits)}", "dim")]
        ]
        waiting = {
            "ready": queue.ready,
            "scheduled": queue.scheduled or 0,
            "held": queue.held,
            "of paused tasks": queue.of_paused_tasks,
            "retrying": queue.retrying,
        }
        told = " · ".join(f"{count(number)} {what}" for what, number in waiting.items() if number)
        lines.append([("waiting  ", "title"), (told or "nothing", "text")])
        if queue.paused:
            since = f" since {look.moment(queue.paused_at, now)}" if queue.paused_at else ""
            who = f" by {clean(queue.paused_by, 80)}" if queue.paused_by else ""
            why = f': "{clean(queue.paused_why, 200)}"' if queue.paused_why else ""
            lines.append([("PAUSED", "warning"), (f"{since}{who}{why}", "text")])
        return lines

    @on(RecordTable.Opened)
    def open_row(self, event: RecordTable.Opened) -> None:
        event.stop()
        if (queue := self.table.current) is not None:
            self.post_message(self.Go("jobs", filter=term("queue", queue.name)))

    def action_act(self, verb: str) -> None:
        if (queue := self.table.current) is not None:
            self.ask(Intent(verb=verb, selection=Named(kind="queue", name=queue.name)))

    def action_purge(self) -> None:
        """Discard every dead job of the queue: a set, so its number has to be typed."""
        queue = self.table.current
        if queue is None:
            return
        if not (dead := queue.states.get("dead", 0)):
            self.post_message(self.Said(f"queue {queue.name} has no dead jobs"))
        else:
            where = f"state:dead {term('queue', queue.name)}"
            self.ask(
                Intent(verb="discard", selection=Matching(where=where, number=dead), whole=True)
            )
