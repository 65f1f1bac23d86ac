"""Runs and their steps as plain records, and the statements that read and write many of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from redrive.models import Json
from redrive.pipelines.advance import RunFacts
from redrive.pipelines.definition import Definition
from redrive.pipelines.states import RunState, StepState
from redrived.store import catalog
from redrived.store.catalog import Version
from redrived.store.unit import Unit, to_json


class StepRow(Struct, kw_only=True):
    """A row of `steps`; changed in place while its run is loaded."""

    run_id: int
    name: str
    place: int
    state: StepState = StepState.WAITING
    job: int | None = None
    clearing: int | None = None
    scheduled_for: int | None = None
    result: str | None = None
    why: str | None = None
    batch: str | None = None
    round: int | None = None
    passed: int = 0


class Course(Struct, kw_only=True):
    """A row of `runs` with its steps; changed in place while it is loaded."""

    id: int
    pipeline: str
    version: int
    batch: str | None = None
    key: str | None = None
    mode: str | None = None
    state: RunState = RunState.RUNNING
    args: str = "{}"
    metrics: str | None = None  # JSON: by step, what its latest attempt measured
    last_completed: str | None = None
    manual_retries: int = 0
    manual_at: int | None = None
    finished_at: int | None = None
    definition: Definition
    steps: dict[str, StepRow] = {}
    let_through: set[str] = set()  # steps whose gate is behind them
    cleared: dict[str, int] = {}  # steps that may be run again, and the jobs that cleared them

    def step_of(self, job: int) -> StepRow | None:
        """The step whose present job this is; earlier jobs of a step have no say any more."""
        return next((row for id, row in self.jobs() if id == job), None)

    def jobs(self) -> Iterator[tuple[int, StepRow]]:
        """The present jobs of its steps, and those that clear for them."""
        for row in self.steps.values():
            yield from ((job, row) for job in (row.job, row.clearing) if job is not None)

    def unmet(self, step: str) -> list[str]:
        """Those it needs that have neither succeeded nor been skipped by their own condition."""
        needs = self.definition.by_name[step].needs
        return [need for need in needs if not self._is_settled_well(need)]

    def _is_settled_well(self, step: str) -> bool:
        state = self.steps[step].state
        return state is StepState.DONE or (state is StepState.SKIPPED and not self.unmet(step))

    def measure(self, step: str, metrics: str | None) -> None:
        """Keep what a step measured, in the place of what its earlier attempts did."""
        known: dict[str, Json] = msgspec.json.decode(self.metrics or "{}")
        known.pop(step, None)
        if metrics is not None:
            known[step] = msgspec.json.decode(metrics)
        self.metrics = to_json(known) if known else None

    def facts(self, now: int) -> RunFacts:
        return RunFacts(
            id=self.id,
            args=msgspec.json.decode(self.args),
            batch=self.batch,
            key=self.key,
            states={name: row.state for name, row in self.steps.items()},
            results=_Results(self.steps),
            let_through=self.let_through,
            scheduled={
                name: row.scheduled_for
                for name, row in self.steps.items()
                if row.scheduled_for is not None
            },
            now=now,
        )


class _Results(Mapping[str, Json]):
    """Results by step, decoded when a template asks."""

    def __init__(self, steps: Mapping[str, StepRow]) -> None:
        self._steps = steps

    def __getitem__(self, name: str) -> Json:
        result = self._steps[name].result
        return None if result is None else msgspec.json.decode(result)

    def __iter__(self) -> Iterator[str]:
        return iter(self._steps)

    def __len__(self) -> int:
        return len(self._steps)


# Columns, with their types where they are not text.
_RUN = {
    "id": "bigint",
    "pipeline": "",
    "version": "int",
    "batch": "",
    "key": "",
    "mode": "",
    "state": "",
    "args": "",
    "metrics": "",
    "last_completed": "",
    "manual_retries": "int",
    "manual_at": "bigint",
    "finished_at": "bigint",
}
_STEP = {
    "run_id": "bigint",
    "name": "",
    "place": "int",
    "state": "",
    "job": "bigint",
    "clearing": "bigint",
    "scheduled_for": "bigint",
    "result": "",
    "why": "",
    "batch": "",
    "round": "int",
    "passed": "int",
}
_RUN_CHANGES = ("state", "metrics", "last_completed", "manual_retries", "manual_at", "finished_at")
_STEP_CHANGES = (
    "state", "job", "clearing", "scheduled_for", "result", "why", "round", "passed",
)  # fmt: skip


def load(unit: Unit, ids: Iterable[int], *, locked: bool = True) -> list[Course]:
    """Runs with their steps; on PostgreSQL they are locked, in one order for everybody."""
    wanted = [(id,) for id in sorted(set(ids))]
    if not wanted:
        return []
    source = unit.database.rows("run bigint")
    lock = " FOR UPDATE OF runs" if locked and not unit.database.is_sqlite else ""
    runs = unit.over(
        wanted,
        f"SELECT {_names(_RUN, 'runs')} FROM {source} JOIN runs ON runs.id = r.run"
        f" ORDER BY runs.id{lock}",
    )
    rows: list[dict[str, Any]] = [dict(zip(_RUN, row, strict=True)) for row in runs]
    known = catalog.definitions(unit, {_version(row) for row in rows})
    courses: dict[int, Course] = {}
    for row in rows:
        row["state"] = RunState(row["state"])
        courses[row["id"]] = Course(**row, definition=known[_version(row)])
    steps = unit.over(
        wanted,
        f"SELECT {_names(_STEP, 'steps')} FROM {source} JOIN steps ON steps.run_id = r.run"
        " ORDER BY steps.run_id, steps.place",
    )
    for written in steps:
        step = msgspec.convert(dict(zip(_STEP, written, strict=True)), StepRow)
        courses[step.run_id].steps[step.name] = step
    return list(courses.values())


def insert(unit: Unit, courses: Sequence[Course]) -> None:
    run, step = ", ".join(_RUN), ", ".join(_STEP)
    unit.over(
        [_values(course, _RUN) for course in courses],
        f"INSERT INTO runs ({run}, created_at)"
        f" SELECT {run}, :now FROM {unit.database.rows(*_typed(_RUN, _RUN))}",
        now=unit.now,
    )
    unit.over(
        [_values(row, _STEP) for course in courses for row in course.steps.values()],
        f"INSERT INTO steps ({step}) SELECT {step} FROM {unit.database.rows(*_typed(_STEP, _STEP))}",
    )


def update(unit: Unit, courses: Sequence[Course], steps: Sequence[StepRow]) -> None:
    run_columns = ("id", *_RUN_CHANGES)
    unit.over(
        [_values(course, run_columns) for course in courses],
        f"UPDATE runs SET {_assigned(_RUN_CHANGES)}"
        f" FROM {unit.database.rows(*_typed(run_columns, _RUN))} WHERE runs.id = r.id",
    )
    step_columns = ("run_id", "name", *_STEP_CHANGES)
    unit.over(
        [_values(row, step_columns) for row in steps],
        f"UPDATE steps SET {_assigned(_STEP_CHANGES)}"
        f" FROM {unit.database.rows(*_typed(step_columns, _STEP))}"
        " WHERE steps.run_id = r.run_id AND steps.name = r.name",
    )


def _version(row: Mapping[str, Any]) -> Version:
    return Version(row["pipeline"], row["version"])


def _names(columns: Iterable[str], table: str) -> str:
    return ", ".join(f"{table}.{name}" for name in columns)


def _typed(columns: Iterable[str], types: Mapping[str, str]) -> list[str]:
    return [f"{name} {types[name]}".strip() for name in columns]


def _assigned(columns: Iterable[str]) -> str:
    return ", ".join(f"{name} = r.{name}" for name in columns)


def _values(row: Struct, columns: Iterable[str]) -> list[object]:
    return [getattr(row, name) for name in columns]
