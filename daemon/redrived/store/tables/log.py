"""What happened, how many jobs stand where, and what the store knows of itself."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Integer, PrimaryKeyConstraint, Table, Text

from redrived.store.tables.common import Id, metadata, partial_index

events = Table(
    "events",
    metadata,
    Column("seq", Id, primary_key=True, autoincrement=False),
    Column("at", BigInteger, nullable=False),
    Column("type", Text, nullable=False),
    Column("job", BigInteger),
    Column("run", BigInteger),
    Column("attempt", Integer),
    Column("state", Text),
    Column("attempts", Integer),
    Column("data", Text),
)
partial_index("events_job", events.c.job, where="job IS NOT NULL")
partial_index("events_run", events.c.run, where="run IS NOT NULL")
partial_index(
    "events_rest",  # those that live by age, not with a job
    events.c.at,
    where="job IS NULL",
)

# How many jobs stand in each state, kept up by every commit. Each node writes rows of its
# own, so that nodes never wait for each other here; the sum over nodes is the count.
tallies = Table(
    "tallies",
    metadata,
    Column("node", Text, nullable=False),
    Column("queue", Text, nullable=False),
    Column("task", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("n", BigInteger, nullable=False),
    PrimaryKeyConstraint("node", "queue", "task", "state"),
)

counters = Table(
    "counters",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", BigInteger, nullable=False),
)

facts = Table(  # what the store knows of itself: its id, who created it
    "facts",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
