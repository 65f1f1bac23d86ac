"""Who is there: a row for each node, beaten every two seconds with the store's own time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, text

from redrive.clock import SECOND
from redrive.protocol.queries import NodeRow, PoolRow
from redrived.store.unit import Unit, to_json

LATE = 5 * SECOND
LOST = 15 * SECOND


class NodeFacts(Struct, frozen=True, kw_only=True):
    """What a node tells of itself with every beat."""

    pid: int
    busy: int = 0
    cpu: float | None = None
    memory: int | None = None
    memory_total: int | None = None
    queues: list[str] = []
    pools: list[PoolRow] = []


class NodeBeat(Struct, frozen=True, kw_only=True):
    state: Literal["up", "draining"]
    started_at: int
    version: str
    slots: int
    facts: NodeFacts


class Missed(Struct, frozen=True):
    """A node that has not beaten for a while, as of now."""

    name: str
    state: str  # late | lost


def arrive(unit: Unit, beats: Sequence[NodeBeat]) -> list[str | None]:
    """This node is there; the answer is how its row stood before, None for a new name."""
    return [_arrive(unit, beat) for beat in beats]


def _arrive(unit: Unit, beat: NodeBeat) -> str | None:
    before = _state(unit)
    _write(unit, beat)
    data: dict[str, Any] = {"node": unit.node, "version": beat.version, "pid": beat.facts.pid}
    if before not in (None, "stopped"):
        data["after"] = before  # it did not say good-bye: a crash, or worse
    unit.emit("node_started", data=data)
    return before


def beat(unit: Unit, beats: Sequence[NodeBeat]) -> list[str | None]:
    """This node is still there; the answer is what others had made of it meanwhile."""
    before = _state(unit)
    for each in beats:
        _write(unit, each)
    return [before] * len(beats)


def leave(unit: Unit, items: Sequence[None]) -> list[None]:
    """This node ends, and owes nothing."""
    unit.execute(
        "UPDATE nodes SET state = 'stopped', beat_at = :now WHERE name = :node",
        now=unit.now,
        node=unit.node,
    )
    unit.emit("node_stopped", data={"node": unit.node})
    return [None] * len(items)


def look_for_missing(unit: Unit, items: Sequence[None]) -> list[list[Missed]]:
    """Nodes that have just become late or lost; each is told of once."""
    found: list[Missed] = []
    for state, known, after in (
        ("lost", "'up', 'draining', 'late'", LOST),
        ("late", "'up', 'draining'", LATE),
    ):
        rows = unit.execute(
            f"UPDATE nodes SET state = :state WHERE state IN ({known}) AND name <> :node"
            " AND beat_at < :since RETURNING name, beat_at",
            state=state,
            node=unit.node,
            since=unit.now - after,
        )
        for name, beat_at in rows.all():
            found.append(Missed(name, state))
            silent = (unit.now - beat_at) / SECOND
            unit.emit(f"node_{state}", data={"node": name, "silent": silent, "by": unit.node})
    return [found] * len(items)


def lost(connection: Connection) -> list[str]:
    """The nodes that are gone, whose jobs are somebody else's now."""
    found = connection.execute(text("SELECT name FROM nodes WHERE state = 'lost'"))
    return list(found.scalars())


def leases(connection: Connection, node: str) -> set[tuple[int, int]]:
    """What the store thinks a node has: jobs with the numbers of their leases."""
    found = connection.execute(
        text("SELECT id, lease FROM jobs WHERE state = 'leased' AND node = :node"), {"node": node}
    )
    return {(job, lease) for job, lease in found}


def rows(connection: Connection) -> list[NodeRow]:
    """Every node there is or was, by name."""
    leader = connection.execute(
        text("SELECT node FROM leaders WHERE role = 'leader'")
    ).scalar_one_or_none()
    found = connection.execute(
        text(
            "SELECT name, state, started_at, beat_at, version, slots, facts FROM nodes"
            " ORDER BY name"
        )
    )
    return [_row(row, leader) for row in found]


def _row(row: Any, leader: str | None) -> NodeRow:
    facts = msgspec.json.decode(row.facts, type=NodeFacts)
    return NodeRow(
        name=row.name,
        state=row.state,
        started_at=row.started_at,
        beat_at=row.beat_at,
        version=row.version,
        slots=row.slots,
        busy=facts.busy,
        cpu=facts.cpu,
        memory=facts.memory,
        memory_total=facts.memory_total,
        queues=facts.queues,
        pools=facts.pools,
        leader=row.name == leader,
    )


def _state(unit: Unit) -> str | None:
    found = unit.execute("SELECT state FROM nodes WHERE name = :node", node=unit.node)
    return found.scalar_one_or_none()


def _write(unit: Unit, beat: NodeBeat) -> None:
    unit.execute(
        "INSERT INTO nodes (name, started_at, beat_at, state, version, slots, facts)"
        " VALUES (:node, :started_at, :now, :state, :version, :slots, :facts)"
        " ON CONFLICT (name) DO UPDATE SET started_at = excluded.started_at,"
        " beat_at = excluded.beat_at, state = excluded.state, version = excluded.version,"
        " slots = excluded.slots, facts = excluded.facts",
        node=unit.node,
        now=unit.now,
        started_at=beat.started_at,
        state=beat.state,
        version=beat.version,
        slots=beat.slots,
        facts=to_json(beat.facts),
    )
