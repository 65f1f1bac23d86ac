"""Forgetting what has ended, a little at a time.

Whatever is forgotten goes whole: a job with its events, notes and tickets, a run with its jobs and
steps. A job that belongs to a run stays as long as the run. A batch goes with its last run; until
then it keeps the counts of all it ever had, and says how many are forgotten. Every function takes
away one chunk at most and answers with what it took, so that other work goes on in between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from redrive.lifecycle import JobState
from redrived.store import ledger, tallies
from redrived.store.removal import remove_jobs
from redrived.store.unit import Unit

CHUNK = 500


class Ended(Struct, frozen=True):
    """Things of one state that ended within a span of time; its end is not part of it."""

    state: str
    since: int
    before: int


class Old(Struct, frozen=True):
    """Events of a span of time."""

    since: int
    before: int


class Forgotten(Struct, frozen=True):
    """How many things are gone, and with them which jobs."""

    n: int = 0
    jobs: list[int] = []


def forget_jobs(unit: Unit, wishes: Sequence[Ended]) -> list[Forgotten]:
    """Jobs that belong to no run, oldest first."""
    return [_forget_jobs(unit, wish) for wish in wishes]


def _forget_jobs(unit: Unit, wish: Ended) -> Forgotten:
    rows = unit.execute(
        "SELECT id, queue, task, state FROM jobs WHERE state = :state"
        " AND finished_at >= :since AND finished_at < :before AND run_id IS NULL"
        " ORDER BY finished_at LIMIT :n" + unit.database.skip_locked,
        state=wish.state,
        since=wish.since,
        before=wish.before,
        n=CHUNK,
    )
    jobs = _remove_jobs(unit, rows.all())
    return Forgotten(len(jobs), jobs)


def forget_runs(unit: Unit, wishes: Sequence[Ended]) -> list[Forgotten]:
    """Runs with their jobs, oldest first."""
    return [_forget_runs(unit, wish) for wish in wishes]


def _forget_runs(unit: Unit, wish: Ended) -> Forgotten:
    found = unit.execute(
        "SELECT id, batch FROM runs WHERE state = :state"
        " AND finished_at >= :since AND finished_at < :before"
        " ORDER BY finished_at LIMIT :n" + unit.database.skip_locked,
        state=wish.state,
        since=wish.since,
        before=wish.before,
        n=CHUNK // 10,
    ).all()
    if not found:
        return Forgotten()
    runs = [(run,) for run, _ in found]
    these = f"IN (SELECT r.run FROM {unit.database.rows('run bigint')})"
    rows = unit.over(runs, f"SELECT id, queue, task, state FROM jobs WHERE run_id {these}")
    jobs = _remove_jobs(unit, rows.all())
    unit.over(runs, f"DELETE FROM events WHERE run {these}")
    unit.over(runs, f"DELETE FROM steps WHERE run_id {these}")
    unit.over(runs, f"DELETE FROM runs WHERE id {these}")
    ledger.forget(unit, [f"run:{run}" for (run,) in runs])
    _forget_in_batches(unit, Counter(batch for _, batch in found if batch is not None))
    return Forgotten(len(runs), jobs)


def forget_events(unit: Unit, wishes: Sequence[Old]) -> list[int]:
    """Events of no job and no run, which live by their age."""
    whose = "job IS NULL AND run IS NULL AND at >= :since AND at < :before"
    return [
        _remove(unit, "events", "seq", whose, since=wish.since, before=wish.before)
        for wish in wishes
    ]


def forget_traces(unit: Unit, wishes: Sequence[int]) -> list[int]:
    """Slots that fired, and redrives that were over, before an instant."""
    return [_forget_traces(unit, before) for before in wishes]


def _forget_traces(unit: Unit, before: int) -> int:
    over = "redrive IN (SELECT id FROM redrives WHERE finished_at < :before)"
    empty = "NOT EXISTS (SELECT 1 FROM redrive_jobs WHERE redrive = redrives.id)"
    return (
        _remove(unit, "slots", "schedule, slot", "at < :before", before=before)
        + _remove(unit, "redrive_jobs", "redrive, job", over, before=before)
        + _remove(unit, "redrives", "id", f"finished_at < :before AND {empty}", before=before)
    )


def forget_receipts(unit: Unit, wishes: Sequence[int]) -> list[int]:
    """Requests whose fate nobody will ask for again."""
    return [_remove(unit, "receipts", "id", "at < :before", before=before) for before in wishes]


def forget_starts(unit: Unit, wishes: Sequence[int]) -> list[int]:
    """Starts that no rate counts any more."""
    return [
        _remove(unit, "starts", "lane, at, job", "at < :before", before=before) for before in wishes
    ]


def forget_nodes(unit: Unit, spans: Sequence[int]) -> list[int]:
    """Nodes that have been silent for so long and hold nothing; their counts go on as ours."""
    return [_forget_nodes(unit, unit.now - span) for span in spans]


def _forget_nodes(unit: Unit, before: int) -> int:
    holding = "EXISTS (SELECT 1 FROM jobs WHERE state = 'leased' AND jobs.node = nodes.name)"
    gone = f"beat_at < :before AND NOT {holding}"
    return _remove(unit, "nodes", "name", gone, before=before) + tallies.take_over(unit, CHUNK)


def _remove(unit: Unit, table: str, key: str, condition: str, **parameters: int) -> int:
    """A chunk of a table's rows; how many."""
    chosen = f"SELECT {key} FROM {table} WHERE {condition} LIMIT :n"
    removed = unit.execute(
        f"DELETE FROM {table} WHERE ({key}) IN ({chosen})", n=CHUNK, **parameters
    )
    return removed.rowcount


def _remove_jobs(unit: Unit, rows: Sequence[tuple[Any, ...]]) -> list[int]:
    ids = [id for id, *_ in rows]
    remove_jobs(unit, ids)
    for (queue, task, state), n in Counter(tuple(row[1:]) for row in rows).items():
        unit.moved(queue, task, JobState(state), None, n)
    return ids


def _forget_in_batches(unit: Unit, forgotten: Mapping[str, int]) -> None:
    for batch, n in sorted(forgotten.items()):
        unit.execute(
            "UPDATE batches SET forgotten = forgotten + :n WHERE name = :batch", batch=batch, n=n
        )
        if unit.execute("SELECT 1 FROM runs WHERE batch = :batch LIMIT 1", batch=batch).first():
            continue
        unit.execute("DELETE FROM gates WHERE batch = :batch", batch=batch)
        unit.execute("DELETE FROM phases WHERE batch = :batch", batch=batch)
        unit.execute("DELETE FROM batches WHERE name = :batch", batch=batch)
