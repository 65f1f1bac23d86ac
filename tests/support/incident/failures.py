"""What fails alike, and the redrive that gives some of it another life."""

from __future__ import annotations

from msgspec.structs import replace

from redrive.clock import SECOND
from redrive.models import ErrorRecord
from redrive.protocol.rows import GroupRow, RedriveRow
from support.incident.times import DAY, HOUR, MINUTE, NOW

RESET = ErrorRecord(
    error_type="connection_error",
    category="transient",
    message="ConnectionResetError: peer closed connection",
    user_message="Network connection error",
    guidance="Will retry automatically.",
    rule="builtin: connection (refused|reset|error)",
    timestamp=NOW - 30 * SECOND,
    fingerprint="a41f09c2",
    traceback='Traceback (most recent call last):\n  File "mail.py", line 41, in send\n    sock.send(data)\nConnectionResetError: peer closed connection',
)
DATABASE = ErrorRecord(
    error_type="OperationalError",
    category="transient",
    message="could not connect to db2.internal:5432",
    user_message="Database unreachable",
    guidance="Wait until db2 answers, then redrive the group.",
    timestamp=NOW - 2 * MINUTE,
    fingerprint="77be10d4",
)


def groups() -> list[GroupRow]:
    return [
        GroupRow(
            fingerprint="77be10d4",
            error_type="OperationalError",
            category="transient",
            signature="OperationalError: could not connect to <host>",
            dead=398,
            retrying=4,
            first_at=NOW - 3 * HOUR,
            last_at=NOW - 2 * MINUTE,
            tasks={"rollup": 380, "bill_customer": 18},
            queues={"reports": 398},
            sample=235,
            user_message="Database unreachable",
            guidance="Wait until db2 answers, then redrive the group.",
            trend=[0] * 20 + [12, 90, 160, 136],
        ),
        GroupRow(
            fingerprint="09d1ce55",
            error_type="validation_error",
            category="permanent",
            signature="ValidationError: field <name> required",
            dead=12,
            retrying=0,
            first_at=NOW - 4 * DAY,
            last_at=NOW - 3 * HOUR,
            tasks={"import_row": 12},
            queues={"imports": 12},
            sample=99,
            user_message="The data does not fit",
            trend=[6, 2, 1] + [0] * 17 + [2, 1, 0, 0],
        ),
        GroupRow(
            fingerprint="e0e0b001",
            error_type="oom",
            category="permanent",
            signature="killed: out of memory (SIGKILL, 137)",
            dead=2,
            retrying=0,
            first_at=NOW - 30 * DAY,
            last_at=NOW - 6 * DAY,
            tasks={"report_pdf": 2},
            queues={"mail": 2},
            sample=98,
        ),
    ]


def groups_by() -> dict[str, list[GroupRow]]:
    """The dead jobs of `groups`, by what else they have in common."""
    database, invalid, memory = groups()
    return {
        "task": [
            replace(database, name="rollup", dead=380),
            replace(database, name="bill_customer", dead=18),
            replace(invalid, name="import_row"),
            replace(memory, name="report_pdf"),
        ],
        "queue": [
            replace(database, name="reports"),
            replace(invalid, name="imports"),
            replace(memory, name="mail"),
        ],
        "node": [
            replace(database, name="w1", dead=400, errors=2),
            replace(invalid, name="w3"),
        ],
        "day": [
            replace(database, name="2026-09-21", dead=404, errors=2),
            replace(invalid, name="2026-09-17", dead=8),
        ],
    }


def redrive() -> RedriveRow:
    return RedriveRow(
        id=4,
        state="running",
        created_at=NOW - 2 * MINUTE,
        by="anna",
        where="state:dead group:77be10d4",
        total=386,
        requeued=118,
        skipped=2,
        succeeded=110,
        failed=3,
    )
