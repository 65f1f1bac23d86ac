"""New jobs enter the store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from redrive.lifecycle import JobState
from redrived.store.log import EventRow
from redrived.store.tables import HELD
from redrived.store.unit import Unit, to_json


class NewJob(Struct, frozen=True, kw_only=True):
    """A job as the engine wants it stored: every default already decided."""

    task: str
    queue: str
    args: str = "{}"  # JSON
    operation: str | None = None
    mode: str | None = None
    priority: int = 0
    rank: int = 0
    max_attempts: int = 1
    available_at: int | None = None  # absent: now
    scheduled_for: int | None = None
    unique: str | None = None
    limit_key: str | None = None
    held: bool = False
    run_id: int | None = None
    step: str | None = None
    batch: str | None = None
    pinned: str | None = None  # PIPELINE@VERSION


class Order(Struct, frozen=True, kw_only=True):
    """The jobs of one request: all of them are stored, or none."""

    jobs: Sequence[NewJob]
    by: str = ""
    data: dict[str, object] = {}  # for the event, beside who asked


class Placed(Struct, frozen=True):
    """Where a job stands after the request; not `created` when its unique key already lived."""

    id: int
    state: JobState = JobState.QUEUED
    created: bool = True


_COLUMNS = (
    "id bigint",
    "task",
    "queue",
    "args",
    "operation",
    "mode",
    "priority int",
    "rank int",
    "max_attempts int",
    "available_at bigint",
    "scheduled_for bigint",
    "unique_key",
    "limit_key",
    "waits",
    "run_id bigint",
    "step",
    "batch",
    "pinned",
)
_NAMES = ", ".join(column.partition(" ")[0] for column in _COLUMNS)
_INSERT = (
    f"INSERT INTO jobs ({_NAMES}, state, attempts, life, lease, executions, created_at,"
    " life_started_at, lost, unknowns, manual_retries, interruptions, snoozes)"
    f" SELECT {_NAMES}, 'queued', 0, 1, 0, 0, :now, :now, 0, 0, 0, 0, 0 FROM {{rows}}"
)


def enqueue(unit: Unit, orders: Sequence[Order]) -> list[list[Placed]]:
    """Store the jobs of all orders with one statement; a live unique key makes no second job."""
    ids = iter(unit.next_ids("job", sum(len(order.jobs) for order in orders)))
    keys = [job.unique for order in orders for job in order.jobs if job.unique is not None]
    bearers = living(unit, keys)
    rows: list[tuple[object, ...]] = []
    events: list[EventRow] = []
    placed = [list(_place(unit, order, ids, bearers, rows, events)) for order in orders]
    if rows:
        unit.each(rows, _COLUMNS, _INSERT, now=unit.now)
        unit.emit_all(events)
    return placed


def _place(
    unit: Unit,
    order: Order,
    ids: Iterator[int],
    bearers: dict[str, Placed],
    rows: list[tuple[object, ...]],
    events: list[EventRow],
) -> Iterator[Placed]:
    now = unit.now
    said = to_json({"by": order.by, **order.data}) if order.by or order.data else None
    for job in order.jobs:
        if job.unique is not None:
            known = bearers.get(job.unique)
            if known is not None:
                yield known
                continue
        new = next(ids)
        available_at = now if job.available_at is None else job.available_at
        waits = HELD if job.held else unit.waits(available_at)
        rows.append(
            (
                new,
                job.task,
                job.queue,
                job.args,
                job.operation,
                job.mode,
                job.priority,
                job.rank,
                job.max_attempts,
                available_at,
                job.scheduled_for,
                job.unique,
                job.limit_key,
                waits,
                job.run_id,
                job.step,
                job.batch,
                job.pinned,
            )
        )
        events.append((now, "step_started", new, job.run_id, None, "queued", 0, said))
        unit.moved(job.queue, job.task, None, JobState.QUEUED)
        unit.waiting(job.queue, job.task, JobState.QUEUED, waits)
        if job.unique is not None:
            bearers[job.unique] = Placed(new, JobState.QUEUED, created=False)
        yield Placed(new)


def living(unit: Unit, keys: Sequence[str]) -> dict[str, Placed]:
    """The live jobs that already bear one of these unique keys."""
    if not keys:
        return {}
    found = unit.over(
        [(key,) for key in set(keys)],
        "SELECT jobs.unique_key, jobs.id, jobs.state"
        f" FROM {unit.database.rows('key')} JOIN jobs ON jobs.unique_key = r.key"
        " WHERE jobs.unique_key IS NOT NULL AND jobs.state IN ('queued', 'leased', 'retry')",
    )
    return {key: Placed(id, JobState(state), created=False) for key, id, state in found}
