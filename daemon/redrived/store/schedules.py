"""Schedules: where each of them stands, and the slots that have been dealt with.

A slot's row is written first, in the same unit of work as what the slot starts: whoever else
thinks it is due finds the row and leaves it alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from sqlalchemy import Connection, text

from redrive.clock import SECOND, iso
from redrive.protocol.rows import FireRow
from redrived.store.enqueue import Order, enqueue
from redrived.store.runs import RunOrder, start
from redrived.store.unit import Unit

KEPT = 200  # slots of one schedule; the age of the rest is the retention's business

Overlap = Literal["skip", "queue", "allow"]

# What a slot has started, when that has not ended.
_RUNNING = (
    "SELECT slots.schedule, slots.job, slots.run FROM slots"
    " LEFT JOIN jobs ON jobs.id = slots.job LEFT JOIN runs ON runs.id = slots.run"
    " WHERE (jobs.state IN ('queued', 'leased', 'retry') OR runs.state = 'running')"
)


class Slot(Struct, frozen=True, kw_only=True):
    """One slot and what it is to start."""

    at: int
    order: Order | RunOrder


class Fire(Struct, frozen=True, kw_only=True):
    """What is due of one schedule, oldest first."""

    schedule: str
    slots: Sequence[Slot] = ()
    overlap: Overlap = "allow"
    most_queued: int = 100
    was_queued: bool = False  # the slots are known, and waited for the one before to end
    dealt_with: int | None = None  # everything up to here; None: the schedule stays where it is
    missed_since: int | None = None  # the oldest slot that is let go
    missed_why: str = ""
    by: str | None = None  # who wanted it now


class Fired(Struct, frozen=True):
    """A slot that has started something."""

    slot: int
    job: int | None = None
    run: int | None = None


def adopt(unit: Unit, schedules: Sequence[Mapping[str, str]]) -> list[None]:
    """Take over the schedules (name → digest) of a config; new and changed ones begin now."""
    for wanted in schedules:
        known = {name: digest for name, digest, _ in unit.execute(_STANDINGS)}
        unit.over(
            [(name,) for name in known.keys() - wanted.keys()],
            "DELETE FROM schedules"
            f" WHERE name IN (SELECT r.name FROM {unit.database.rows('name')})",
        )
        unit.over(
            [(name, digest) for name, digest in wanted.items() if known.get(name) != digest],
            "INSERT INTO schedules (name, digest, last_slot) SELECT r.name, r.digest, :now"
            f" FROM {unit.database.rows('name', 'digest')} WHERE true"
            " ON CONFLICT (name) DO UPDATE SET digest = excluded.digest, last_slot = :now",
            now=unit.now,
        )
    return [None] * len(schedules)


def fire(unit: Unit, items: Sequence[Fire]) -> list[list[Fired]]:
    return [_fire(unit, item) for item in items]


def _fire(unit: Unit, item: Fire) -> list[Fired]:
    fired = [found for slot in item.slots if (found := _fire_slot(unit, item, slot)) is not None]
    if item.missed_since is not None:
        _let_go(unit, item, item.missed_since)
    if item.dealt_with is not None:
        unit.execute(
            "UPDATE schedules SET last_slot = :slot WHERE name = :name",
            name=item.schedule,
            slot=item.dealt_with,
        )
    if item.slots:
        _forget_old(unit, item.schedule)
    return fired


def _fire_slot(unit: Unit, item: Fire, slot: Slot) -> Fired | None:
    """Start what a slot is for, unless it has been dealt with, or the one before still runs."""
    running = None if item.overlap == "allow" else _running(unit, item.schedule)
    if item.was_queued:
        if running is not None or not _claim(unit, item.schedule, slot.at):
            return None
        return _start(unit, item, slot)
    outcome = _outcome(unit, item, running)
    if not _note(unit, item.schedule, slot.at, outcome):
        return None
    if outcome == "fired":
        return _start(unit, item, slot)
    if outcome == "skipped":
        why = f"{running} still runs" if running else "earlier slots still wait"
        _tell_missed(unit, item, slot=iso(slot.at), why=why)
    return None


def _start(unit: Unit, item: Fire, slot: Slot) -> Fired:
    if isinstance(slot.order, RunOrder):
        [[begun]] = start(unit, [slot.order])
        found = Fired(slot.at, run=begun.id)
        what: dict[str, Any] = {"run": f"r{begun.id}"}
    else:
        [[placed]] = enqueue(unit, [slot.order])
        found = Fired(slot.at, job=placed.id)
        what = {"job": placed.id}
    unit.execute(
        "UPDATE slots SET job = :job, run = :run WHERE schedule = :schedule AND slot = :slot",
        schedule=item.schedule,
        slot=slot.at,
        job=found.job,
        run=found.run,
    )
    data = {"name": item.schedule, "slot": iso(slot.at), **what}
    unit.emit("schedule_fired", data={**data, "by": item.by} if item.by else data)
    return found


def _note(unit: Unit, schedule: str, slot: int, outcome: str) -> bool:
    """Write a slot down; False when somebody has."""
    added = unit.execute(
        "INSERT INTO slots (schedule, slot, at, outcome) VALUES (:schedule, :slot, :now, :outcome)"
        " ON CONFLICT (schedule, slot) DO NOTHING",
        schedule=schedule,
        slot=slot,
        now=unit.now,
        outcome=outcome,
    )
    return added.rowcount == 1


def _claim(unit: Unit, schedule: str, slot: int) -> bool:
    claimed = unit.execute(
        "UPDATE slots SET outcome = 'fired', at = :now"
        " WHERE schedule = :schedule AND slot = :slot AND outcome = 'queued'",
        schedule=schedule,
        slot=slot,
        now=unit.now,
    )
    return claimed.rowcount == 1


def _running(unit: Unit, schedule: str) -> str | None:
    """What an earlier slot has started and has not ended, in words."""
    found = unit.execute(f"{_RUNNING} AND schedule = :schedule LIMIT 1", schedule=schedule).first()
    if found is None:
        return None
    _, job, run = found
    return f"job {job}" if job is not None else f"r{run}"


def _outcome(unit: Unit, item: Fire, running: str | None) -> str:
    """What becomes of a slot that is due; where slots queue, none passes those that wait."""
    if item.overlap != "queue":
        return "fired" if running is None else "skipped"
    queued = unit.execute(
        "SELECT count(*) FROM slots WHERE schedule = :schedule AND outcome = 'queued'",
        schedule=item.schedule,
    ).scalar()
    if running is None and not queued:
        return "fired"
    return "queued" if queued < item.most_queued else "skipped"


def _let_go(unit: Unit, item: Fire, since: int) -> None:
    if _note(unit, item.schedule, since, "missed"):
        first = item.slots[0].at if item.slots else item.dealt_with or unit.now
        _tell_missed(unit, item, since=iso(since), until=iso(first), why=item.missed_why)


def _tell_missed(unit: Unit, item: Fire, **data: str) -> None:
    unit.emit("schedule_missed", data={"name": item.schedule, **data})


def _forget_old(unit: Unit, schedule: str) -> None:
    unit.execute(
        "DELETE FROM slots WHERE schedule = :schedule AND outcome <> 'queued' AND slot <"
        " (SELECT slot FROM slots WHERE schedule = :schedule"
        "  ORDER BY slot DESC LIMIT 1 OFFSET :kept)",
        schedule=schedule,
        kept=KEPT,
    )


# ---- reading -------------------------------------------------------------------------------


class Standing(NamedTuple):
    name: str
    digest: str
    last_slot: int


class Waiting(NamedTuple):
    """Slots that wait for the one before, oldest first, and the jobs and runs that keep them."""

    slots: list[tuple[str, int]]
    jobs: frozenset[int]
    runs: frozenset[str]


_STANDINGS = "SELECT name, digest, last_slot FROM schedules"


def standings(connection: Connection) -> dict[str, Standing]:
    return {row[0]: Standing(*row) for row in connection.execute(text(_STANDINGS))}


def waiting(connection: Connection) -> Waiting:
    slots = connection.execute(
        text("SELECT schedule, min(slot) FROM slots WHERE outcome = 'queued' GROUP BY schedule")
    )
    found = [(schedule, slot) for schedule, slot in slots]
    if not found:
        return Waiting([], frozenset(), frozenset())
    names = {schedule for schedule, _ in found}
    blockers = [row for row in connection.execute(text(_RUNNING)) if row.schedule in names]
    return Waiting(
        found,
        frozenset(row.job for row in blockers if row.job is not None),
        frozenset(f"r{row.run}" for row in blockers if row.run is not None),
    )


def last_fires(connection: Connection, names: Iterable[str], n: int) -> dict[str, list[FireRow]]:
    """The latest slots of each schedule, oldest first, with what became of them."""
    return {name: _last_fires(connection, name, n) for name in names}


def _last_fires(connection: Connection, name: str, n: int) -> list[FireRow]:
    rows = connection.execute(
        text(
            "SELECT slots.slot, slots.at, slots.outcome, slots.job, slots.run,"
            " coalesce(jobs.state, runs.state) AS state,"
            " coalesce(jobs.started_at, runs.created_at) AS began_at,"
            " coalesce(jobs.finished_at, runs.finished_at) AS finished_at"
            " FROM slots LEFT JOIN jobs ON jobs.id = slots.job"
            " LEFT JOIN runs ON runs.id = slots.run"
            " WHERE slots.schedule = :name ORDER BY slots.slot DESC LIMIT :n"
        ),
        {"name": name, "n": n},
    )
    return [
        FireRow(
            slot=row.slot,
            at=row.at,
            outcome=row.outcome,
            job=row.job,
            run=None if row.run is None else f"r{row.run}",
            state=row.state,
            took=_seconds(row.began_at, row.finished_at),
        )
        for row in reversed(rows.all())
    ]


def _seconds(began_at: int | None, finished_at: int | None) -> float | None:
    if began_at is None or finished_at is None:
        return None
    return (finished_at - began_at) / SECOND
