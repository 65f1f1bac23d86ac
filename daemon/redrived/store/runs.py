"""Runs start: all of a request with their first jobs, in one unit of work."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from redrive.pipelines.definition import Definition
from redrived.store.courses import Courses
from redrived.store.run_rows import Course
from redrived.store.unit import Unit


class NewRun(Struct, frozen=True, kw_only=True):
    args: str = "{}"  # JSON
    key: str | None = None
    batch: str | None = None


class RunOrder(Struct, frozen=True, kw_only=True):
    """The runs of one request: all of them start, or none."""

    definition: Definition
    version: int
    runs: Sequence[NewRun]
    mode: str | None = None
    by: str = ""


class Begun(Struct, frozen=True):
    """Not `created` when a run with the same key is still on its way."""

    id: int
    created: bool = True


def start(unit: Unit, orders: Sequence[RunOrder]) -> list[list[Begun]]:
    return [_start(unit, order) for order in orders]


def _start(unit: Unit, order: RunOrder) -> list[Begun]:
    pipeline = order.definition.name
    ids = iter(unit.next_ids("run", len(order.runs)))
    running = running_with_keys(
        unit, pipeline, {run.key for run in order.runs if run.key is not None}
    )
    courses = Courses(unit, order.by)
    courses.rounds.join_batches({run.batch: pipeline for run in order.runs if run.batch})
    begun: list[Begun] = []
    for run in order.runs:
        if run.key is not None and run.key in running:
            begun.append(Begun(running[run.key], created=False))
            continue
        id = next(ids)
        courses.add(
            Course(
                id=id,
                pipeline=pipeline,
                version=order.version,
                batch=run.batch,
                key=run.key,
                mode=order.mode or order.definition.mode,
                args=run.args,
                definition=order.definition,
            )
        )
        begun.append(Begun(id))
        if run.key is not None:
            running[run.key] = id
    courses.write()
    return begun


def running_with_keys(unit: Unit, pipeline: str, keys: set[str]) -> dict[str, int]:
    """The runs on their way that bear one of these keys."""
    if not keys:
        return {}
    # CROSS JOIN tells SQLite to look each key up, rather than all keys for each run.
    found = unit.over(
        [(key,) for key in sorted(keys)],
        f"SELECT runs.key, runs.id FROM {unit.database.rows('key')} CROSS JOIN runs"
        " WHERE runs.pipeline = :pipeline AND runs.key = r.key AND runs.state = 'running'",
        pipeline=pipeline,
    )
    return {row[0]: row[1] for row in found}
