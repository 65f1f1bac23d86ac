"""How everything stands, at a glance."""

from __future__ import annotations

from redrive.clock import SECOND
from redrive.protocol import queries
from redrive.protocol.announcements import JobVitals, Vitals
from redrive.protocol.rows import Attention, DueRow, NodeRow, QueueRow
from support.incident.times import DAY, HOUR, MINUTE, NOW


def welcome(**changes: object) -> queries.Welcome:
    known: dict[str, object] = {
        "version": 1,
        "program": "1.0.0",
        "node": "w1",
        "epoch": "e1",
        "store": "sqlite",
        "role": "operator",
        "who": "anna",
        "environment": "PROD-EU",
        "colour": "red",
    }
    return queries.Welcome(**{**known, **changes})  # type: ignore[arg-type]


def status(**changes: object) -> queries.StatusReply:
    known: dict[str, object] = {
        "seq": 8_412_903,
        "at": NOW,
        "epoch": "e1",
        "environment": "PROD-EU",
        "node": "w1",
        "state": "running",
        "trouble": None,
        "states": {"queued": 1856, "leased": 12, "retry": 35, "done": 91_204, "dead": 412},
        "queues": queues(),
        "nodes": nodes(),
        "paused": [],
        "attention": attention(),
        "due": due(),
    }
    return queries.StatusReply(**{**known, **changes})  # type: ignore[arg-type]


def vitals(node: str, *jobs: JobVitals) -> Vitals:
    return Vitals(epoch="e1", at=NOW, node=node, cpu=0.0, memory=1, jobs=list(jobs))


def queues() -> list[QueueRow]:
    return [
        QueueRow(
            name="mail",
            priority=100,
            concurrency=8,
            running=8,
            states={"queued": 1204, "retry": 31, "dead": 2, "done": 80_000},
            oldest_ready_at=NOW - 252 * SECOND,
            ready=1204,
            retrying=31,
        ),
        QueueRow(
            name="reports",
            priority=50,
            concurrency=4,
            rate="100/min",
            running=3,
            states={"queued": 12, "retry": 4, "dead": 398, "done": 9_000},
            oldest_ready_at=NOW - 21 * SECOND,
            ready=12,
            retrying=4,
        ),
        QueueRow(
            name="imports",
            concurrency=2,
            paused=True,
            paused_by="anna",
            paused_at=NOW - 63 * MINUTE,
            paused_why="vendor outage",
            states={"queued": 640, "dead": 12, "done": 1_100},
            oldest_ready_at=NOW - 63 * MINUTE,
            ready=600,
            scheduled=28,
            held=12,
        ),
        QueueRow(name="default", concurrency=16, running=1, states={"done": 1_104}, priority=10),
    ]


def nodes() -> list[NodeRow]:
    def node(name: str, **more: object) -> NodeRow:
        known: dict[str, object] = {
            "name": name,
            "state": "up",
            "started_at": NOW - 3 * DAY - 4 * HOUR,
            "beat_at": NOW - SECOND // 2,
            "version": "1.0.0",
            "slots": 8,
        }
        return NodeRow(**{**known, **more})  # type: ignore[arg-type]

    giga = 1024**3
    return [
        node(
            "w1",
            busy=8,
            cpu=61.0,
            memory=int(2.1 * giga),
            memory_total=8 * giga,
            queues=["mail", "reports"],
            leader=True,
        ),
        node(
            "w2", slots=16, busy=1, cpu=9.0, memory=giga, memory_total=8 * giga, queues=["default"]
        ),
        node(
            "w3",
            slots=4,
            busy=3,
            cpu=40.0,
            memory=4 * giga,
            memory_total=8 * giga,
            queues=["mail"],
            beat_at=NOW - 9 * SECOND,
            version="0.9.1",
        ),
    ]


def attention() -> list[Attention]:
    return [
        Attention(
            kind="dead",
            text="398 dead in reports: Database unreachable",
            where="group:77be10d4",
            screen="dead",
            severity="error",
        ),
        Attention(
            kind="paused",
            text='imports paused 1h03m by anna: "vendor outage"',
            where="queue:imports",
        ),
        Attention(
            kind="limit", text="mail at its limit 8/8, oldest waits 4m12s", where="queue:mail"
        ),
        Attention(kind="node", text="node w3 late: last beat 9s ago", screen="nodes"),
    ]


def due() -> list[DueRow]:
    return [
        DueRow(at=NOW + 50 * SECOND, kind="retry", n=31, name="mail"),
        DueRow(at=NOW + 2 * MINUTE, kind="schedule", n=1, name="nightly-rollup"),
        DueRow(at=NOW + 6 * MINUTE, kind="retry", n=4, name="reports"),
        DueRow(at=NOW + 12 * MINUTE, kind="schedule", n=1, name="sync-crm"),
    ]
