"""4 Runs and batches: items on their way through a pipeline, step by step."""

from __future__ import annotations

from collections.abc import Sequence

from textual import on
from textual.app import ComposeResult

from redrive.models import Run, StepState
from redrive.protocol.queries import BatchPage, ListBatches, ListRuns, RunPage
from redrive.protocol.rows import BatchRow, GateRow
from redrive_tui import keys
from redrive_tui.acting import Intent
from redrive_tui.formatting import Line, Span, ago, apart, count, fit, until, word_of
from redrive_tui.job_list import term
from redrive_tui.sanitize import clean
from redrive_tui.screens.pane import Desk, Pane
from redrive_tui.widgets.lines import Heading, Panel
from redrive_tui.widgets.table import Column, RecordTable
from redrive_tui.wishes import Ids, Options

RUN_COLUMNS = [
    Column("RUN", 8),
    Column("PIPELINE", 14, from_width=60),
    Column("KEY", 14, from_width=104),
    Column("BATCH", 12, from_width=132),
    Column("STATE", 12),
    Column("STATUS", 12, from_width=76),
    Column("STEPS", 0),
    Column("AGE", 8, right=True),
]
STEP_COLUMNS = [
    Column("STEP", 16),
    Column("STATE", 12),
    Column("ATT", 5),
    Column("JOB", 8, from_width=60),
    Column("", 0),
]
BATCH_COLUMNS = [
    Column("BATCH", 16),
    Column("PIPELINE", 14, from_width=92),
    Column("RUNNING", 8, right=True),
    Column("DONE", 8, right=True),
    Column("FAILED", 8, right=True),
    Column("PHASE", 0),
    Column("GATE", 16, from_width=76),
]
WAITING = ("·", "dim")
RUNS_SHOWN = BATCHES_SHOWN = 200


class RunsPane(Pane):
    context = "runs"
    BINDINGS = keys.bindings("tabs", "run")

    DEFAULT_CSS = """
    RunsPane RecordTable { margin-top: 1; }
    RunsPane #run-steps { height: auto; max-height: 45%; margin-top: 0; }
    RunsPane #batch-phases { max-height: 45%; }
    RunsPane .of-batches { display: none; }
    RunsPane.-batches .of-batches { display: block; }
    RunsPane.-batches .of-runs { display: none; }
    """

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.filter = ""
        self.all_runs: list[Run] | None = None  # None: nobody has said yet
        self.all_batches: list[BatchRow] = []
        self.more_runs = False  # than are shown
        self.top = Panel()
        self.runs = RecordTable[Run](
            RUN_COLUMNS, self._run_cells, lambda run: run.id, id="run-list", empty="no runs"
        )
        self.steps = RecordTable[StepState](
            STEP_COLUMNS, self._step_cells, lambda step: step.name, id="run-steps", empty="no steps"
        )
        self.batches = RecordTable[BatchRow](
            BATCH_COLUMNS,
            self._batch_cells,
            lambda batch: batch.name,
            id="batch-list",
            empty="no batches",
        )
        self.phases = Panel(id="batch-phases")

    def compose(self) -> ComposeResult:
        yield self.top
        yield self.runs.add_class("of-runs")
        yield Heading("STEPS").add_class("of-runs")
        yield self.steps.add_class("of-runs")
        yield self.batches.add_class("of-batches")
        yield Heading("PHASES").add_class("of-batches")
        yield self.phases.add_class("of-batches")

    async def read(self) -> None:
        source = self.desk.source
        where = self.filter
        runs: RunPage = await source.ask(ListRuns(where=where, limit=RUNS_SHOWN))
        batches: BatchPage = await source.ask(ListBatches(limit=BATCHES_SHOWN))
        self.all_batches = batches.batches
        if where == self.filter:
            self.all_runs, self.more_runs = runs.runs, runs.after is not None

    def show(self) -> None:
        if self.all_runs is None:
            self.runs.forget()
        else:
            self.runs.show(self.all_runs)
        self.batches.show(self.all_batches)
        self._show_steps()
        self._show_phases()
        batches = self.shows_batches
        more_batches = len(self.all_batches) >= BATCHES_SHOWN
        runs = self.runs.rows
        left: Line = [
            (f" Runs {_number(runs, self.more_runs)} ", "dim" if batches else "tab"),
            (" ", ""),
            (f" Batches {_number(self.all_batches, more_batches)} ", "tab" if batches else "dim"),
        ]
        right: Line = [(clean(self.filter, 80), "accent")]
        if self.more_runs and not batches:
            right = [(f"the newest {count(len(runs))}  ", "dim"), *right]
        self.top.lines = [apart(left, right, self.top.size.width)]

    @on(RecordTable.Moved, "#run-list")
    def _show_steps(self) -> None:
        run = self.runs.current
        self.steps.show(run.steps if run is not None else [])

    @on(RecordTable.Moved, "#batch-list")
    def _show_phases(self) -> None:
        batch = self.batches.current
        self.phases.lines = self._phase_lines(batch) if batch is not None else []

    def _run_cells(self, run: Run) -> list[Line]:
        word = word_of(run.state)
        return [
            [(clean(run.id, 40), "strong")],
            [(clean(run.pipeline, 80), "text")],
            [(clean(run.key or "", 80), "text")],
            [(clean(run.batch or "", 80), "dim")],
            [(f"{self.desk.look.glyph(word)} {run.state}", word)],
            [(clean(run.status, 80), "text")] if run.status != run.state else [],
            self._step_row(run),
            [(ago(run.created_at, self.as_of), "dim")],
        ]

    def _step_row(self, run: Run) -> Line:
        """The steps of a run as a row of states."""
        line: Line = []
        for step in run.steps:
            line += [self._mark(step), (f" {clean(step.name, 24)}  ", "dim")]
        return line

    def _mark(self, step: StepState) -> Span:
        word = word_of(step.state)
        glyph = self.desk.look.glyph(word)
        return (glyph, word) if glyph != " " else WAITING

    def _step_cells(self, step: StepState) -> list[Line]:
        now = self.as_of
        word = word_of(step.state)
        told: Line = []
        if step.error is not None:
            told = [(clean(f"{step.error.error_type}: {step.error.message}", 200), "dead")]
        elif step.why:
            told = [(clean(step.why, 200), "dim")]
        elif step.scheduled_for is not None and step.scheduled_for > now:
            told = [(until(step.scheduled_for, now), "scheduled")]
        return [
            [(clean(step.name, 80), "strong")],
            [self._mark(step), (f" {word}", word if self._mark(step) != WAITING else "dim")],
            [(f"{step.attempts}/{step.max_attempts}", "dim")],
            [(str(step.job) if step.job is not None else "-", "text")],
            told,
        ]

    def _batch_cells(self, batch: BatchRow) -> list[Line]:
        return [
            [(clean(batch.name, 80), "strong")],
            [(clean(batch.pipeline, 80), "text")],
            [(count(batch.running), "running" if batch.running else "dim")],
            [(count(batch.done), "done" if batch.done else "dim")],
            [(count(batch.failed), "dead" if batch.failed else "dim")],
            self._phases(batch),
            self._gate(batch),
        ]

    def _phases(self, batch: BatchRow) -> Line:
        """Each step with how many of its jobs are in which state; and what is not kept any more."""
        line: Line = []
        if batch.forgotten:
            line.append((f"{count(batch.forgotten)} of {count(batch.runs)} forgotten  ", "dim"))
        for step, states in batch.phases.items():
            line.append((f"{clean(step, 24)} ", "dim"))
            for state, number in states.items():
                word = word_of(state)
                line.append((f"{self.desk.look.glyph(word)}{count(number)} ", word))
            line.append((" ", ""))
        return line

    def _phase_lines(self, batch: BatchRow) -> list[Line]:
        """The same with all there is to say, a step on each line."""
        lines: list[Line] = []
        gates = {gate.step: gate for gate in batch.gates}
        for step, states in batch.phases.items():
            line: Line = [*fit([(clean(step, 80), "strong")], 24), ("  ", "")]
            for state, number in states.items():
                word = word_of(state)
                glyph = self.desk.look.glyph(word).strip()
                line.append((f"{count(number)} {f'{glyph} {word}'.strip()}  ", word))
            lines.append([*line, *(self._gate_words(gates[step]) if step in gates else [])])
        return lines

    def _gate(self, batch: BatchRow) -> Line:
        for gate in batch.gates:
            if gate.opened_at is None and (words := self._gate_words(gate)):
                return words
        return []

    def _gate_words(self, gate: GateRow) -> Line:
        if gate.opened_at is not None:
            return [(f"opened {ago(gate.opened_at, self.as_of)}", "dim")]
        if gate.opens_at is not None:
            return [(f"opens {until(gate.opens_at, self.as_of)}", "scheduled")]
        return [(f"{count(gate.unsettled)} to settle", "dim")] if gate.unsettled else []

    @on(RecordTable.Opened)
    def _opened(self, event: RecordTable.Opened) -> None:
        event.stop()
        if event.table is self.runs:
            self.steps.focus()
        elif event.table is self.batches and (batch := self.batches.current):
            self._only(batch.name)
        elif (step := self.steps.current) is not None and step.job is not None:
            self.post_message(self.Go("job", job=step.job))

    def _only(self, batch: str) -> None:
        self.filter = term("batch", batch) if batch else ""
        self.remove_class("-batches")
        self.all_runs, self.more_runs = None, False
        self.catch_up()
        self.reread()
        self.runs.focus()

    def step_back(self) -> bool:
        if self.steps.has_focus:
            self.runs.focus()
        elif self.filter:
            self._only("")
        else:
            return False
        return True

    def action_tab(self, step: int) -> None:
        self.toggle_class("-batches")
        (self.batches if self.shows_batches else self.runs).focus()
        self.catch_up()

    @property
    def shows_batches(self) -> bool:
        return self.has_class("-batches")

    def impossible(self) -> set[str]:
        return {"run.resume"} if self.shows_batches else set()

    def action_resume(self) -> None:
        """From the step under the cursor, or where the run stopped."""
        if self.shows_batches:
            self.post_message(self.Said("a batch is not resumed as a whole: open it for its runs"))
            return
        run = self.runs.current
        if run is None:
            self.post_message(self.Said("there is no run under the cursor"))
            return
        step = self.steps.current.name if self.steps.has_focus and self.steps.current else None
        selection = Ids(ids=(run.id,))
        self.ask(Intent(verb="requeue", selection=selection, options=Options(step=step)), self.runs)

    def action_copy(self) -> None:
        batch, run = self.batches.current, self.runs.current
        if self.shows_batches and batch is not None:
            self.post_message(self.Copied(batch.name))
        elif not self.shows_batches and run is not None:
            self.post_message(self.Copied(run.id))


def _number(rows: Sequence[object], more: bool) -> str:
    """How many there are; a page of them is no count."""
    return count(len(rows)) + "+" * more
