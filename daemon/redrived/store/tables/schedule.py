"""Schedules, and the slots they have dealt with."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, PrimaryKeyConstraint, Table, Text

from redrived.store.tables.common import metadata

schedules = Table(
    "schedules",
    metadata,
    Column("name", Text, primary_key=True),
    Column("digest", Text, nullable=False),  # of its timing: a changed schedule starts anew
    Column("last_slot", BigInteger, nullable=False),  # dealt with; at first, when it was first seen
)

slots = Table(  # each slot fires once, whoever thinks it is due
    "slots",
    metadata,
    Column("schedule", Text, nullable=False),
    Column("slot", BigInteger, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("job", BigInteger),
    Column("run", BigInteger),
    Column("outcome", Text, nullable=False),  # fired | queued | skipped | missed
    PrimaryKeyConstraint("schedule", "slot"),
)
