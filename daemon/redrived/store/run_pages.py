"""Reading runs, as everybody speaks of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import ColumnElement, Connection, and_, func, or_, select

from redrive.deciding.standing import retrying
from redrive.errors import UsageProblem
from redrive.filters import parse
from redrive.lifecycle import JobState
from redrive.models import ErrorRecord, Json, Run
from redrive.models import StepState as StepRecord
from redrive.pipelines.definition import Definition, decode
from redrive.pipelines.states import ACTIVE, RunState, StepState
from redrive.pipelines.status import status
from redrived.store import events, run_filtering
from redrived.store.jobs import readable
from redrived.store.run_filtering import RUNS
from redrived.store.tables import catalog, gates, jobs, runs, steps

_decode = msgspec.json.decode


class RunsPage(NamedTuple):
    runs: list[Run]
    after: str | None
    as_of: int


def get(connection: Connection, id: int) -> Run | None:
    found = _records(connection, select(runs).where(runs.c.id == id))
    return found[0] if found else None


def listed(
    connection: Connection, where: str, now: int, *, limit: int = 50, after: str | None = None
) -> RunsPage:
    """Those that a filter lets through at `now`."""
    is_sqlite = connection.dialect.name == "sqlite"
    condition = run_filtering.where(parse(where, RUNS), now, is_sqlite=is_sqlite)
    return _page(connection, condition, limit=limit, after=after)


def in_state(connection: Connection, state: RunState, limit: int) -> list[Run]:
    return _page(connection, runs.c.state == state.value, limit=limit).runs


def _page(
    connection: Connection, where: ColumnElement[bool], *, limit: int, after: str | None = None
) -> RunsPage:
    """The newest runs first, from where the page before ended."""
    query = select(runs).where(where).order_by(runs.c.id.desc()).limit(limit + 1)
    if after is not None:
        query = query.where(runs.c.id < run_number(after))
    found = _records(connection, query)
    more = found[limit - 1].id if len(found) > limit else None
    return RunsPage(found[:limit], more, events.head(connection))


def exists(connection: Connection, id: int) -> bool:
    return connection.execute(select(runs.c.id).where(runs.c.id == id)).first() is not None


def run_number(id: str) -> int:
    """`r7` as a number."""
    number = id.removeprefix("r")
    if not (id.startswith("r") and number.isascii() and number.isdecimal() and len(number) < 19):
        raise UsageProblem(f"{id[:40]!r} is not a run's id", hint="runs are numbered r1, r2, …")
    return int(number)


def _records(connection: Connection, query: Any) -> list[Run]:
    rows = [dict(row) for row in connection.execute(query).mappings()]
    if not rows:
        return []
    definitions = _definitions(connection, {(row["pipeline"], row["version"]) for row in rows})
    parts = _steps(connection, [row["id"] for row in rows])
    return [
        _record(row, definitions[row["pipeline"], row["version"]], parts.get(row["id"], []))
        for row in rows
    ]


def _definitions(
    connection: Connection, versions: Iterable[tuple[str, int]]
) -> dict[tuple[str, int], Definition]:
    wanted = or_(
        *(and_(catalog.c.name == name, catalog.c.version == version) for name, version in versions)
    )
    found = connection.execute(
        select(catalog.c.name, catalog.c.version, catalog.c.definition).where(wanted)
    )
    return {(name, version): decode(written) for name, version, written in found}


def _steps(connection: Connection, ids: Sequence[int]) -> dict[int, list[dict[str, Any]]]:
    query = (
        select(
            steps,
            jobs.c.state.label("job_state"),
            jobs.c.attempts,
            jobs.c.max_attempts,
            jobs.c.last_attempt_at,
            jobs.c.error,
            gates.c.opens_at,
        )
        .outerjoin(jobs, jobs.c.id == func.coalesce(steps.c.clearing, steps.c.job))
        .outerjoin(
            gates,
            and_(
                gates.c.batch == steps.c.batch,
                gates.c.step == steps.c.name,
                gates.c.round == steps.c.round,
            ),
        )
        .where(steps.c.run_id.in_(ids))
        .order_by(steps.c.run_id, steps.c.place)
    )
    found: dict[int, list[dict[str, Any]]] = {}
    for row in connection.execute(query).mappings():
        found.setdefault(row["run_id"], []).append(dict(row))
    return found


def _record(
    row: Mapping[str, Any], definition: Definition, parts: Sequence[Mapping[str, Any]]
) -> Run:
    state = RunState(row["state"])
    return Run(
        id=f"r{row['id']}",
        pipeline=row["pipeline"],
        version=row["version"],
        batch=row["batch"],
        key=row["key"],
        state=state.value,
        status=status(
            definition,
            state,
            {part["name"]: StepState(part["state"]) for part in parts},
            {part["name"]: JobState(part["job_state"]) for part in parts if part["job_state"]},
            row["last_completed"],
        ),
        args=readable(row["args"], dict[str, Any]),
        metrics=_metrics(row["metrics"], parts) if row["metrics"] else None,
        last_completed=row["last_completed"],
        created_at=row["created_at"],
        finished_at=row["finished_at"],
        steps=[_step(definition, part) for part in parts],
    )


def _metrics(written: str, parts: Sequence[Mapping[str, Any]]) -> dict[str, Json]:
    """What all steps measured; where two say the same thing, the later step is right."""
    measured: dict[str, dict[str, Json]] = _decode(written)
    return {name: value for part in parts for name, value in measured.get(part["name"], {}).items()}


def _step(definition: Definition, part: Mapping[str, Any]) -> StepRecord:
    state = StepState(part["state"])
    job_state: str | None = part["job_state"] if state in ACTIVE else None
    is_gated = state is StepState.GATED
    attempts = part["attempts"] or 0
    policy = definition.by_name[part["name"]].lane.policy
    max_attempts = part["max_attempts"] or policy.max_attempts
    return StepRecord(
        name=part["name"],
        job=part["job"],
        state=job_state or state.value,
        attempts=attempts,
        max_attempts=max_attempts,
        last_attempt_at=part["last_attempt_at"],
        scheduled_for=part["opens_at"] if is_gated else part["scheduled_for"],
        result=_decode(part["result"]) if part["result"] else None,
        error=_decode(part["error"], type=ErrorRecord) if part["error"] else None,
        why=retrying(job_state, attempts, max_attempts) or part["why"],
    )
