"""What a batch counts, kept up by differences: runs by state, phases, gates.

Nothing is counted by looking at rows: every commit that moves steps adds what it moved, so a
batch of ten thousand runs costs each of them as much as a batch of ten.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from redrive.clock import SECOND
from redrive.pipelines.states import UNSETTLED, StepState
from redrived.store.run_rows import Course
from redrived.store.unit import Unit


class GateKey(NamedTuple):
    batch: str
    step: str
    round: int


class GateCounts(NamedTuple):
    unsettled: int
    waiting: int
    first_pass: int


class Counts:
    """A sum over runs, of which two can be subtracted."""

    def __init__(self) -> None:
        self.runs: Counter[tuple[str, str]] = Counter()  # batch, state
        self.phases: Counter[tuple[str, str, str]] = Counter()  # batch, step, state
        self.unsettled: Counter[GateKey] = Counter()
        self.waiting: Counter[GateKey] = Counter()
        self.first_pass: Counter[GateKey] = Counter()
        self.delays: dict[GateKey, int] = {}

    def add(self, course: Course, sign: int) -> None:
        if course.batch is None:
            return
        self.runs[course.batch, course.state] += sign
        for name, row in course.steps.items():
            self.phases[course.batch, name, row.state] += sign
            if row.round is None:
                continue
            key = GateKey(course.batch, name, row.round)
            step = course.definition.by_name[name]
            self.delays[key] = round(step.delay * SECOND)
            self.unsettled[key] += sign * (step.gate and row.state is StepState.WAITING)
            self.waiting[key] += sign * (row.state is StepState.GATED)
            going = row.state in UNSETTLED and not row.passed
            self.first_pass[key] += sign * (step.retry_together and going)


def write(unit: Unit, change: Counts) -> dict[GateKey, GateCounts]:
    """Add a change to what is counted; answers with the gates it moved."""
    if change.phases:
        _write_runs(unit, change.runs)
        _write_phases(unit, change.phases)
    return _write_gates(unit, change)


def _write_runs(unit: Unit, runs: Counter[tuple[str, str]]) -> None:
    rows = {batch: Counter[str]() for batch, _ in runs}
    for (batch, state), n in runs.items():
        rows[batch][state] += n
    states = ("running", "done", "failed", "cancelled")
    unit.over(
        [
            (batch, sum(moved.values()), *(moved[state] for state in states))
            for batch, moved in sorted(rows.items())
            if any(moved.values())
        ],
        "UPDATE batches SET runs = batches.runs + r.runs, running = batches.running + r.running,"
        " done = batches.done + r.done, failed = batches.failed + r.failed,"
        " cancelled = batches.cancelled + r.cancelled"
        f" FROM {unit.database.rows('name', 'runs int', *(f'{state} int' for state in states))}"
        " WHERE batches.name = r.name",
    )


def _write_phases(unit: Unit, phases: Counter[tuple[str, str, str]]) -> None:
    unit.over(
        [(*key, n) for key, n in sorted(phases.items()) if n],
        "INSERT INTO phases (batch, step, state, n)"
        " SELECT r.batch, r.step, r.state, r.change FROM"
        f" {unit.database.rows('batch', 'step', 'state', 'change int')} WHERE true"
        " ON CONFLICT (batch, step, state) DO UPDATE SET n = phases.n + excluded.n",
    )


def _write_gates(unit: Unit, change: Counts) -> dict[GateKey, GateCounts]:
    moved = {
        key
        for counter in (change.unsettled, change.waiting, change.first_pass)
        for key, n in counter.items()
        if n
    }
    if not moved:
        return {}
    source = unit.database.rows(
        "batch",
        "step",
        "round int",
        "unsettled int",
        "waiting int",
        "first_pass int",
        "delay bigint",
    )
    rows = unit.over(
        [
            (
                *key,
                change.unsettled[key],
                change.waiting[key],
                change.first_pass[key],
                change.delays.get(key, 0),
            )
            for key in sorted(moved)
        ],
        # The timer runs once nobody is unsettled; whoever comes to wait restarts it.
        "UPDATE gates SET unsettled = gates.unsettled + r.unsettled,"
        " waiting = gates.waiting + r.waiting, first_pass = gates.first_pass + r.first_pass,"
        " opens_at = CASE WHEN gates.opened_at IS NOT NULL THEN gates.opens_at"
        " WHEN gates.unsettled + r.unsettled > 0 OR gates.waiting + r.waiting = 0 THEN NULL"
        " WHEN r.waiting > 0 OR gates.opens_at IS NULL THEN :now + r.delay"
        " ELSE gates.opens_at END"
        f" FROM {source}"
        " WHERE gates.batch = r.batch AND gates.step = r.step AND gates.round = r.round"
        " RETURNING gates.batch, gates.step, gates.round, gates.unsettled, gates.waiting,"
        " gates.first_pass, gates.opens_at, gates.opened_at",
        now=unit.now,
    )
    found: dict[GateKey, GateCounts] = {}
    for batch, step, round_, unsettled, waiting, first_pass, opens_at, opened_at in rows:
        found[GateKey(batch, step, round_)] = GateCounts(unsettled, waiting, first_pass)
        if opens_at is not None and opened_at is None:
            unit.gate_opens(opens_at)
    return found
