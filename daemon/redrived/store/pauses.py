"""Pausing and resuming queues, tasks and schedules."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from sqlalchemy import Connection, text

from redrive.protocol.rows import Pause
from redrived.store.unit import Unit


class Pausing(Struct, frozen=True, kw_only=True):
    kind: str  # queue | task | schedule
    name: str
    by: str
    why: str | None = None
    resume: bool = False


def pause(unit: Unit, wishes: Sequence[Pausing]) -> list[bool]:
    """True where something changed; pausing what is paused changes nothing."""
    return [_resume(unit, wish) if wish.resume else _pause(unit, wish) for wish in wishes]


def _pause(unit: Unit, wish: Pausing) -> bool:
    added = unit.execute(
        "INSERT INTO pauses (kind, name, at, by, why) VALUES (:kind, :name, :at, :by, :why)"
        " ON CONFLICT (kind, name) DO NOTHING",
        kind=wish.kind,
        name=wish.name,
        at=unit.now,
        by=wish.by,
        why=wish.why,
    )
    if added.rowcount != 1:
        return False
    data = {"name": wish.name, "by": wish.by, **({"why": wish.why} if wish.why else {})}
    unit.emit(f"{wish.kind}_paused", data=data)
    return True


def _resume(unit: Unit, wish: Pausing) -> bool:
    removed = unit.execute(
        "DELETE FROM pauses WHERE kind = :kind AND name = :name", kind=wish.kind, name=wish.name
    )
    if removed.rowcount != 1:
        return False
    unit.emit(f"{wish.kind}_resumed", data={"name": wish.name, "by": wish.by})
    unit.made_ready()
    return True


def read(connection: Connection) -> list[Pause]:
    rows = connection.execute(text("SELECT kind, name, at, by, why FROM pauses ORDER BY at"))
    return [Pause(kind=kind, name=name, at=at, by=by, why=why) for kind, name, at, by, why in rows]
