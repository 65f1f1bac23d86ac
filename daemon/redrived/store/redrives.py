"""Redrives: a set of dead or cancelled jobs, chosen once, given another life bit by bit.

What was chosen stays chosen (`redrive_jobs`), so later arrivals are never included and a
restart goes on where it was; what a job was before is kept beside it, so that it can be undone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Column, ColumnElement, Connection, and_, insert, literal, select, text

from redrive.config.sections import ManualRetry
from redrive.lifecycle import JobState
from redrive.pipelines.states import StepState
from redrive.protocol.rows import RedriveRow
from redrived.store import actions
from redrived.store.actions import Acted
from redrived.store.tables import jobs, redrive_jobs, runs
from redrived.store.unit import Unit, to_json

ACTIVE = ("canary", "running", "paused", "watching")
REASONS = 3  # for which jobs were skipped, that are told
_IS_ACTIVE = f"redrives.state IN {ACTIVE}"
# Its other life begins once the data of its step is cleared, or never if that fails.
IS_CLEARED_FIRST = (
    "EXISTS (SELECT 1 FROM steps WHERE steps.run_id = jobs.run_id AND steps.job = jobs.id"
    f" AND steps.state = '{StepState.CLEARING}')"
)


class NewRedrive(Struct, frozen=True, kw_only=True):
    """A set and how it is to be worked off; `options` as the operator gave them."""

    by: str
    where: str | None = None  # in words, for the record
    condition: Any = None  # the same as SQL: ColumnElement[bool] | None
    ids: Sequence[int] | None = None
    newest: int | None = None
    options: dict[str, Any] = {}


class Chosen(Struct, frozen=True, kw_only=True):
    id: int | None  # None: there was nothing to choose, and no redrive is begun
    total: int


class Portion(Struct, frozen=True, kw_only=True):
    """The next so many jobs of a redrive."""

    redrive: int
    n: int
    by: str
    force: bool = False
    manual: ManualRetry = ManualRetry()
    reason: str | None = None


class Settled(NamedTuple):
    """A requeued job has ended."""

    redrive: int
    job: int
    outcome: str  # done | dead


class Change(Struct, frozen=True, kw_only=True):
    """A redrive goes into another state."""

    redrive: int
    state: str
    event: str
    by: str | None = None
    why: str | None = None
    options: dict[str, Any] | None = None
    finished: bool = False


def _of_its_run(column: Column[Any]) -> ColumnElement[Any]:
    # No join: the filter beside it names columns of jobs without their table.
    return select(column).where(runs.c.id == jobs.c.run_id).scalar_subquery()


# What a job was when it was chosen, and its run.
_KEPT = {
    "job": jobs.c.id,
    "life": jobs.c.life,
    "state": jobs.c.state,
    "reason": jobs.c.reason,
    "attempts": jobs.c.attempts,
    "finished_at": jobs.c.finished_at,
    "manual_at": jobs.c.manual_at,
    "run_manual_retries": _of_its_run(runs.c.manual_retries),
    "run_manual_at": _of_its_run(runs.c.manual_at),
    "run_finished_at": _of_its_run(runs.c.finished_at),
}


def create(unit: Unit, wishes: Sequence[NewRedrive]) -> list[Chosen]:
    return [_create(unit, wish) for wish in wishes]


def _create(unit: Unit, wish: NewRedrive) -> Chosen:
    [id] = unit.next_ids("redrive", 1)
    chosen: ColumnElement[bool] = jobs.c.state.in_((JobState.DEAD, JobState.CANCELLED))
    if wish.ids is not None:
        chosen = and_(chosen, jobs.c.id.in_(list(wish.ids)))
    if wish.condition is not None:
        condition: ColumnElement[bool] = wish.condition
        chosen = and_(chosen, condition)
    if wish.newest is not None:
        chosen = and_(chosen, jobs.c.id <= wish.newest)
    rows = select(literal(id), *_KEPT.values()).where(chosen)
    choose = insert(redrive_jobs).from_select(["redrive", *_KEPT], rows)
    total = unit.execute(choose.execution_options(preserve_rowcount=True)).rowcount
    if not total:
        return Chosen(id=None, total=0)
    unit.execute(
        'INSERT INTO redrives (id, state, created_at, "by", filter, options, total, requeued,'
        " skipped, succeeded, failed) VALUES"
        " (:id, :state, :now, :by, :filter, :options, :total, 0, 0, 0, 0)",
        id=id,
        state="canary" if wish.options.get("canary") else "running",
        now=unit.now,
        by=wish.by,
        filter=wish.where,
        options=to_json(wish.options),
        total=total,
    )
    data = {"redrive": id, "by": wish.by, "total": total, "where": wish.where, **wish.options}
    unit.emit("redrive_started", data={k: v for k, v in data.items() if v is not None})
    return Chosen(id=id, total=total)


def requeue_portion(unit: Unit, portions: Sequence[Portion]) -> list[list[Acted]]:
    """Give the next jobs of a redrive their other life; those that cannot have one say why."""
    return [_requeue(unit, portion) for portion in portions]


def _requeue(unit: Unit, portion: Portion) -> list[Acted]:
    rows = unit.execute(
        "SELECT job FROM redrive_jobs WHERE redrive = :id AND outcome IS NULL"
        " ORDER BY job LIMIT :n",
        id=portion.redrive,
        n=portion.n,
    )
    chosen = [job for (job,) in rows]
    if not chosen:
        return []
    data: dict[str, Any] = {"redrive": portion.redrive}
    if portion.reason:
        data["reason"] = portion.reason
    wish = actions.Act(
        verb="requeue",
        jobs=chosen,
        by=portion.by,
        force=portion.force,
        manual=portion.manual,
        data=data,
    )
    [acted] = actions.act(unit, [wish])
    _note(
        unit,
        [
            (
                portion.redrive,
                each.id,
                "skipped" if each.refused else "requeued",
                each.refused.message if each.refused else None,
            )
            for each in acted
        ],
    )
    return acted


def last_requeued(connection: Connection, id: int) -> int | None:
    """When a redrive has requeued something the last time: it takes its jobs in their order."""
    found = connection.execute(
        text(
            "SELECT jobs.manual_at FROM redrive_jobs JOIN jobs ON jobs.id = redrive_jobs.job"
            " WHERE redrive_jobs.redrive = :id AND redrive_jobs.outcome <> 'skipped'"
            " ORDER BY redrive_jobs.job DESC LIMIT 1"
        ),
        {"id": id},
    ).scalar()
    return None if found is None else int(found)


def settle(unit: Unit, items: Sequence[Settled]) -> list[None]:
    """Note how requeued jobs have ended; whoever notes it first is counted."""
    source = unit.database.rows("redrive bigint", "job bigint", "outcome")
    noted = unit.over(
        items,
        f"UPDATE redrive_jobs SET outcome = r.outcome FROM {source}"
        " WHERE redrive_jobs.redrive = r.redrive AND redrive_jobs.job = r.job"
        " AND redrive_jobs.outcome = 'requeued'"
        " RETURNING redrive_jobs.redrive, redrive_jobs.outcome",
    )
    _count(unit, Counter((redrive, outcome) for redrive, outcome in noted))
    return [None] * len(items)


_COUNTED = {"requeued": "requeued", "skipped": "skipped", "done": "succeeded", "dead": "failed"}


def _note(unit: Unit, rows: Sequence[tuple[int, int, str, str | None]]) -> None:
    source = unit.database.rows("redrive bigint", "job bigint", "outcome", "why")
    unit.over(
        rows,
        "UPDATE redrive_jobs SET outcome = r.outcome, why = r.why"
        f" FROM {source} WHERE redrive_jobs.redrive = r.redrive AND redrive_jobs.job = r.job",
    )
    _count(unit, Counter((row[0], row[2]) for row in rows))


def _count(unit: Unit, outcomes: Counter[tuple[int, str]]) -> None:
    for (redrive, outcome), n in outcomes.items():
        column = _COUNTED[outcome]
        unit.execute(
            f"UPDATE redrives SET {column} = {column} + :n WHERE id = :id", n=n, id=redrive
        )


def change(unit: Unit, changes: Sequence[Change]) -> list[bool]:
    return [_change(unit, each) for each in changes]


def _change(unit: Unit, each: Change) -> bool:
    is_new = "true" if each.options is not None else "state <> :state"
    changed = unit.execute(
        "UPDATE redrives SET state = :state, why = coalesce(:why, why),"
        " options = coalesce(:options, options), finished_at = :finished_at"
        f" WHERE id = :id AND {is_new}"
        # What has ended stays so, whoever had begun its next step; but it can be undone.
        f" AND ({_IS_ACTIVE} OR :state = 'undone')",
        id=each.redrive,
        state=each.state,
        why=each.why,
        options=to_json(each.options) if each.options is not None else None,
        finished_at=unit.now if each.finished else None,
    ).rowcount
    if changed:
        skips = _skips(unit.connection, each.redrive)
        data = {
            "redrive": each.redrive,
            "by": each.by,
            "why": each.why,
            "pace": each.options.get("pace") if each.options is not None else None,
            "skips": skips or None,
        }
        unit.emit(each.event, data={k: v for k, v in data.items() if v is not None})
    return bool(changed)


# ---- reading -----------------------------------------------------------------------------


def rows(connection: Connection, limit: int = 100) -> list[RedriveRow]:
    """The newest first, with why they skipped jobs."""
    found = _rows(connection, "ORDER BY id DESC LIMIT :n", n=limit)
    return [replace(row, skips=_skips(connection, row.id)) if row.skipped else row for row in found]


def _skips(connection: Connection, id: int) -> dict[str, int]:
    """The most common reasons for which it skipped jobs, and how many for each."""
    found = connection.execute(
        text(
            "SELECT why, count(*) AS n FROM redrive_jobs WHERE redrive = :id"
            f" AND outcome = 'skipped' GROUP BY why ORDER BY n DESC, why LIMIT {REASONS}"
        ),
        {"id": id},
    )
    return {why: int(n) for why, n in found}


def active(connection: Connection) -> list[RedriveRow]:
    """Those under way."""
    return _rows(connection, f"WHERE {_IS_ACTIVE} ORDER BY id DESC")


def get(connection: Connection, id: int) -> RedriveRow | None:
    found = _rows(connection, "WHERE id = :id", id=id)
    return found[0] if found else None


def _rows(connection: Connection, which: str, **parameters: int) -> list[RedriveRow]:
    found = connection.execute(
        text(
            'SELECT id, state, created_at, "by", filter, total, requeued, skipped, succeeded,'
            f" failed, options, finished_at, why FROM redrives {which}"
        ),
        parameters,
    )
    return [
        RedriveRow(
            id=row[0],
            state=row[1],
            created_at=row[2],
            by=row[3],
            where=row[4],
            total=row[5],
            requeued=row[6],
            skipped=row[7],
            succeeded=row[8],
            failed=row[9],
            options=msgspec.json.decode(row[10]),
            finished_at=row[11],
            why=row[12],
        )
        for row in found
    ]


def ended(connection: Connection) -> list[Settled]:
    """Requeued jobs of those under way that have ended, and nobody has noted it.

    What is gone by now was discarded, so it was dead or cancelled.
    """
    found = connection.execute(
        text(
            "SELECT redrive_jobs.redrive, redrive_jobs.job, jobs.state FROM redrives"
            " JOIN redrive_jobs ON redrive_jobs.redrive = redrives.id"
            " LEFT JOIN jobs ON jobs.id = redrive_jobs.job"
            f" WHERE {_IS_ACTIVE} AND redrive_jobs.outcome = 'requeued' AND (jobs.id IS NULL"
            f" OR (jobs.state IN ('done', 'dead', 'cancelled') AND NOT {IS_CLEARED_FIRST}))"
        )
    )
    return [
        Settled(redrive, job, "done" if state == "done" else "dead")
        for redrive, job, state in found
    ]


def under_way(connection: Connection, redrive: int) -> list[int]:
    """The jobs it has requeued that have not ended yet."""
    found = connection.execute(
        text("SELECT job FROM redrive_jobs WHERE redrive = :id AND outcome = 'requeued'"),
        {"id": redrive},
    )
    return [job for (job,) in found]
