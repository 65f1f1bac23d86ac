"""The breakers that are not closed, so that an outage survives a restart of the daemon."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from sqlalchemy import Connection, text

from redrived.store.unit import Unit


class Breaker(Struct, frozen=True, kw_only=True):
    """`state` is open, probing or closed; a closed one has no row."""

    task: str
    state: str
    opened_at: int
    probe_at: int
    why: str


def write(unit: Unit, changes: Sequence[Breaker]) -> list[None]:
    for change in changes:
        if change.state == "closed":
            gone = unit.execute("DELETE FROM breakers WHERE task = :task", task=change.task)
            if gone.rowcount == 1:  # and no other node was faster
                unit.emit("breaker_closed", data={"task": change.task, "why": change.why})
            unit.made_ready()
            continue
        known = unit.execute(
            "UPDATE breakers SET state = :state, probe_at = :probe_at WHERE task = :task",
            task=change.task,
            state=change.state,
            probe_at=change.probe_at,
        )
        if known.rowcount == 0 and change.state == "open":  # else another node has closed it
            opened = unit.execute(
                "INSERT INTO breakers (task, state, opened_at, probe_at, why)"
                " VALUES (:task, :state, :opened_at, :probe_at, :why)"
                " ON CONFLICT (task) DO NOTHING",
                task=change.task,
                state=change.state,
                opened_at=change.opened_at,
                probe_at=change.probe_at,
                why=change.why,
            )
            if opened.rowcount == 1:  # and no other node was faster
                unit.emit("breaker_opened", data={"task": change.task, "why": change.why})
        if change.state == "probing":
            unit.made_ready()
    return [None] * len(changes)


def read(connection: Connection) -> list[Breaker]:
    rows = connection.execute(
        text("SELECT task, state, opened_at, probe_at, why FROM breakers ORDER BY task")
    )
    return [
        Breaker(task=task, state=state, opened_at=opened_at, probe_at=probe_at, why=why)
        for task, state, opened_at, probe_at, why in rows
    ]
