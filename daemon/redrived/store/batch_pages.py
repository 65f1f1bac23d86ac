"""Reading batches: their runs by state, how far each phase is, and their gates.

The counts are read, never counted; see `batch_counts`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import ColumnElement, Connection, and_, or_, select, text

from redrive.lifecycle import JobState
from redrive.pipelines.definition import decode
from redrive.pipelines.states import StepState
from redrive.protocol.rows import BatchRow, DueRow, GateRow
from redrived.store.tables import batches, catalog, gates, phases

# What a live step is called while its job waits; and by what a running job was leased from.
_WAITING = {StepState.LIVE.value: "queued", StepState.RETRYING.value: "retrying"}
_WAITING_FROM = {JobState.QUEUED.value: "queued", JobState.RETRY.value: "retrying"}
_ORDER = (
    "waiting", "gated", "clearing", "queued", "running", "retrying",
    "done", "dead", "cancelled", "skipped",
)  # fmt: skip


def batch_rows(
    connection: Connection, limit: int = 200, after: str | None = None
) -> list[BatchRow]:
    """The newest batches with their phases and gates; their counts are read, never counted.

    Or those behind the one called `after`; none when it is gone meanwhile.
    """
    query = select(batches).order_by(batches.c.created_at.desc(), batches.c.name).limit(limit)
    if after is not None:
        query = query.where(_is_behind(after))
    rows = [dict(row) for row in connection.execute(query).mappings()]
    names = [row["name"] for row in rows]
    phases_of = _phases(connection, {row["name"]: row["pipeline"] for row in rows})
    open_gates = _gates(connection, names)
    return [
        BatchRow(
            name=row["name"],
            pipeline=row["pipeline"],
            created_at=row["created_at"],
            runs=row["runs"],
            running=row["running"],
            done=row["done"],
            failed=row["failed"],
            cancelled=row["cancelled"],
            forgotten=row["forgotten"],
            phases=phases_of[row["name"]],
            gates=open_gates.get(row["name"], []),
        )
        for row in rows
    ]


def _is_behind(name: str) -> ColumnElement[bool]:
    at = select(batches.c.created_at).where(batches.c.name == name).scalar_subquery()
    return or_(batches.c.created_at < at, and_(batches.c.created_at == at, batches.c.name > name))


def gates_of(connection: Connection, batch: str | None) -> list[GateRow]:
    return [] if batch is None else _gates(connection, [batch]).get(batch, [])


def gates_due(connection: Connection, until: int) -> list[DueRow]:
    """The gates that open by then, and how many runs wait at each."""
    query = select(gates).where(
        gates.c.opens_at.is_not(None), gates.c.waiting > 0, gates.c.opens_at <= until
    )
    return [
        DueRow(
            at=row["opens_at"], kind="gate", n=row["waiting"], name=f"{row['batch']}/{row['step']}"
        )
        for row in connection.execute(query).mappings()
    ]


def _phases(
    connection: Connection, pipelines: Mapping[str, str]
) -> dict[str, dict[str, dict[str, int]]]:
    """By batch and step, how many are in which state: steps and states in the order they come."""
    counted: dict[str, dict[str, Counter[str]]] = {batch: {} for batch in pipelines}
    query = select(phases).where(phases.c.batch.in_(pipelines), phases.c.n != 0)
    for batch, step, state, n in connection.execute(query):
        counted[batch].setdefault(step, Counter())[_WAITING.get(state) or state] = n
    # A lease writes down no phase: which of the live steps run is seen by the leased jobs,
    # of which there are never more than slots.
    for batch, step, leased_from, n in connection.execute(_RUNNING):
        if batch in counted:
            counted[batch][step].update({"running": n, _WAITING_FROM[leased_from]: -n})
    places = _places(connection, {*pipelines.values()})
    return {
        batch: {
            step: {state: found[step][state] for state in _ORDER if found[step][state] > 0}
            for step in sorted(found, key=lambda step: places.get((pipelines[batch], step), 0))
        }
        for batch, found in counted.items()
    }


def _places(connection: Connection, pipelines: Collection[str]) -> dict[tuple[str, str], int]:
    """The place of each step in its pipeline, by the newest version that has it."""
    versions = connection.execute(
        select(catalog.c.name, catalog.c.definition)
        .where(catalog.c.name.in_(pipelines))
        .order_by(catalog.c.version)
    )
    return {
        (name, step.name): place
        for name, definition in versions
        for place, step in enumerate(decode(definition).in_order)
    }


# By themselves first: joined at once, SQLite would find them among all jobs of runs.
_RUNNING = text(
    "WITH leased AS MATERIALIZED"
    " (SELECT id, run_id, batch, step, leased_from FROM jobs WHERE state = 'leased')"
    " SELECT leased.batch, leased.step, leased.leased_from, count(*) FROM leased"
    " JOIN steps ON steps.run_id = leased.run_id AND steps.job = leased.id"
    " WHERE leased.batch IS NOT NULL"
    " GROUP BY leased.batch, leased.step, leased.leased_from"
)


def _gates(connection: Connection, names: Sequence[str]) -> dict[str, list[GateRow]]:
    found: dict[str, list[GateRow]] = {}
    query = select(gates).where(gates.c.batch.in_(names)).order_by(gates.c.step, gates.c.round)
    for row in connection.execute(query).mappings():
        found.setdefault(row["batch"], []).append(
            GateRow(
                step=row["step"],
                round=row["round"],
                unsettled=row["unsettled"],
                waiting=row["waiting"],
                opens_at=row["opens_at"],
                opened_at=row["opened_at"],
            )
        )
    return found
