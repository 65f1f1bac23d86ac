"""Who is there: a row for each node, beaten every two seconds with the store's own time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, text

from redrive.clock import SECOND
from redrive.errors import AlreadyRunning
from redrive.protocol.rows import NodeRow, PoolRow
from redrived.store.leaders import is_term
from redrived.store.unit import Unit, to_json

LATE = 5 * SECOND
LOST = 12 * SECOND  # with two seconds between looks, it is known within 15


class NodeFacts(Struct, frozen=True, kw_only=True):
    """What a node tells of itself with every beat."""

    pid: int
    home: str = ""  # which of several nodes of this name it is, should there be several
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


def arrive(unit: Unit, beats: Sequence[NodeBeat]) -> list[str | AlreadyRunning | None]:
    """This node is there; the answer is how its row stood before, None for a new name.

    A name belongs to one state directory as long as its node is alive: two nodes of one name
    would settle each other's jobs.
    """
    return [_arrive(unit, beat) for beat in beats]


def _arrive(unit: Unit, beat: NodeBeat) -> str | AlreadyRunning | None:
    known = _known(unit)
    if known is not None and known.state != "stopped" and known.is_other(beat):
        left = (known.beat_at + LOST - unit.now) / SECOND
        if left > 0:
            return AlreadyRunning(
                f"a node named {unit.node} is alive (pid {known.facts.pid}, last beat"
                f" {(unit.now - known.beat_at) / SECOND:.0f} s ago)",
                hint="give this one a name of its own (`[daemon] name`);"
                f" if that one has died, start again in {left + 1:.0f} s",
            )
    _write(unit, beat)
    data: dict[str, Any] = {"node": unit.node, "version": beat.version, "pid": beat.facts.pid}
    if known is not None and known.state != "stopped":
        data["after"] = known.state  # it did not say good-bye: a crash, or worse
    unit.emit("node_started", data=data)
    return None if known is None else known.state


def beat(unit: Unit, beats: Sequence[NodeBeat]) -> list[str | AlreadyRunning | None]:
    """This node is still there; the answer is what others had made of it meanwhile."""
    known = _known(unit)
    if known is not None and any(known.is_other(each) for each in beats):
        gone = AlreadyRunning(
            f"another node took the name {unit.node} while this one was taken for lost",
            hint="give each of them a name of its own (`[daemon] name`)",
        )
        return [gone] * len(beats)
    for each in beats:
        _write(unit, each)
    return [None if known is None else known.state] * len(beats)


def leave(unit: Unit, homes: Sequence[str]) -> list[None]:
    """This node ends, and owes nothing; unless its name is somebody else's by now."""
    known = _known(unit)
    if known is not None and known.facts.home in homes:
        unit.execute(
            "UPDATE nodes SET state = 'stopped', beat_at = :now WHERE name = :node",
            now=unit.now,
            node=unit.node,
        )
        unit.emit("node_stopped", data={"node": unit.node})
    return [None] * len(homes)


def look_for_missing(unit: Unit, terms: Sequence[int]) -> list[list[Missed]]:
    """Nodes that have just become late or lost, told of once; who leads no more accuses nobody."""
    found: list[Missed] = []
    if not any(is_term(unit, term) for term in terms):
        return [found] * len(terms)
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
    return [found] * len(terms)


def lost(connection: Connection) -> list[str]:
    """The nodes that are gone, whose jobs are somebody else's now."""
    found = connection.execute(text("SELECT name FROM nodes WHERE state = 'lost'"))
    return list(found.scalars())


def rows(connection: Connection) -> list[NodeRow]:
    """Every node there is, or was in the last days, by name."""
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


class _Known(NamedTuple):
    """The row that bears this node's name."""

    state: str
    beat_at: int
    facts: NodeFacts

    def is_other(self, beat: NodeBeat) -> bool:
        return self.facts.home != beat.facts.home


def _known(unit: Unit) -> _Known | None:
    row = unit.execute(
        "SELECT state, beat_at, facts FROM nodes WHERE name = :node", node=unit.node
    ).first()
    if row is None:
        return None
    state, beat_at, facts = row
    return _Known(state, beat_at, msgspec.json.decode(facts, type=NodeFacts))


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
