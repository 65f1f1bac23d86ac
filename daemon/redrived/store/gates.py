"""Gates of batches open: when everything before them has settled and their timer has run out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from redrive.pipelines.advance import Enqueue, start_step
from redrive.pipelines.states import StepState
from redrived.store.courses import Courses
from redrived.store.unit import Unit


class Opened(Struct, frozen=True):
    runs: int  # that were let through
    next_at: int | None  # the earliest gate that is to open; may be due already: then again


def open_gates(unit: Unit, limits: Sequence[int]) -> list[Opened]:
    """Let up to `limit` runs through the gate whose time came first."""
    runs = _open(unit, max(limits))
    next_at = unit.execute(
        "SELECT min(opens_at) FROM gates WHERE opens_at IS NOT NULL AND waiting > 0"
    ).scalar()
    return [Opened(runs, next_at)] * len(limits)


def _open(unit: Unit, limit: int) -> int:
    gate = unit.execute(
        "SELECT batch, step, round, waiting, opens_at, opened_at FROM gates"
        " WHERE opens_at IS NOT NULL AND waiting > 0 AND opens_at <= :now"
        " ORDER BY opens_at LIMIT 1" + unit.database.skip_locked,
        now=unit.now,
    ).first()
    if gate is None:
        return 0
    batch, step, number, waiting, opens_at, opened_at = gate
    key: dict[str, Any] = {"batch": batch, "step": step, "round": number}
    if opened_at is None:
        unit.execute(
            "UPDATE gates SET opened_at = :now"
            " WHERE batch = :batch AND step = :step AND round = :round",
            now=unit.now,
            **key,
        )
        unit.emit("gate_opened", data={**key, "runs": waiting})
    found = unit.execute(
        "SELECT run_id FROM steps WHERE state = 'gated' AND batch = :batch AND name = :step"
        " AND round = :round ORDER BY run_id LIMIT :n",
        n=limit,
        **key,
    )
    return _let_through(unit, step, opens_at, [run for (run,) in found])


def _let_through(unit: Unit, step: str, opened_at: int, runs: Sequence[int]) -> int:
    courses = Courses(unit)
    for course in courses.load(runs).values():
        row = course.steps[step]
        if row.state is not StepState.GATED:
            continue  # another node was faster
        course.let_through.add(step)
        row.scheduled_for = opened_at
        action = start_step(course.definition.by_name[step], course.facts(unit.now))
        courses.apply(course, action)
        if not isinstance(action, Enqueue):
            courses.go_on(course)
    courses.write()
    return len(runs)
