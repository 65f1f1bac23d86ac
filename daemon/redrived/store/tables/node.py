"""What nodes know of each other, and what holds for all of them."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Integer, PrimaryKeyConstraint, Table, Text

from redrived.store.tables.common import metadata

nodes = Table(
    "nodes",
    metadata,
    Column("name", Text, primary_key=True),
    Column("started_at", BigInteger, nullable=False),
    Column("beat_at", BigInteger, nullable=False),
    Column("state", Text, nullable=False),  # up | draining | stopped | lost
    Column("version", Text, nullable=False),
    Column("slots", Integer, nullable=False),
    Column("facts", Text, nullable=False),  # cpu, memory, queues, process identity: JSON
)

leaders = Table(
    "leaders",
    metadata,
    Column("role", Text, primary_key=True),
    Column("node", Text, nullable=False),
    Column("term", BigInteger, nullable=False),
    Column("until", BigInteger, nullable=False),
)

starts = Table(  # recent leases of lanes that have a rate
    "starts",
    metadata,
    Column("lane", Text, nullable=False),  # queue:NAME or task:NAME
    Column("at", BigInteger, nullable=False),
    Column("job", BigInteger, nullable=False),
    PrimaryKeyConstraint("lane", "at", "job"),
)

pauses = Table(
    "pauses",
    metadata,
    Column("kind", Text, nullable=False),  # queue | task | schedule
    Column("name", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("by", Text, nullable=False),
    Column("why", Text),
    PrimaryKeyConstraint("kind", "name"),
)

breakers = Table(
    "breakers",
    metadata,
    Column("task", Text, primary_key=True),
    Column("state", Text, nullable=False),  # open | probing; no row: closed
    Column("opened_at", BigInteger, nullable=False),
    Column("probe_at", BigInteger, nullable=False),
    Column("probe_job", BigInteger),
    Column("why", Text, nullable=False),
)
