"""Runs of pipelines, their batches, and the definitions both follow."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, PrimaryKeyConstraint, Table, Text

from redrived.store.tables.common import Id, metadata, partial_index

runs = Table(
    "runs",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False),
    Column("pipeline", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("batch", Text),
    Column("key", Text),
    Column("mode", Text),
    Column("state", Text, nullable=False),
    Column("args", Text, nullable=False),
    Column("metrics", Text),
    Column("last_completed", Text),
    Column("manual_retries", Integer, nullable=False),
    Column("manual_at", BigInteger),
    Column("created_at", BigInteger, nullable=False),
    Column("finished_at", BigInteger),
)
partial_index("runs_batch", runs.c.batch, runs.c.id, where="batch IS NOT NULL")
Index("runs_key", runs.c.pipeline, runs.c.key)
partial_index("runs_finished", runs.c.finished_at, where="finished_at IS NOT NULL")

steps = Table(  # one row per step of a run
    "steps",
    metadata,
    Column("run_id", BigInteger, nullable=False),
    Column("name", Text, nullable=False),
    Column("place", Integer, nullable=False),
    Column("state", Text, nullable=False),  # see redrive.pipelines.states
    Column("job", BigInteger),
    Column("clearing", BigInteger),  # the job that clears its data before it is run again
    Column("scheduled_for", BigInteger),
    Column("result", Text),
    Column("why", Text),
    Column("batch", Text),  # this and the next: which row of `gates` it is counted in, if any
    Column("round", Integer),
    Column("passed", Integer, nullable=False),  # 1: its first attempt is over
    PrimaryKeyConstraint("run_id", "name"),
)
partial_index(
    "steps_gated",
    steps.c.batch,
    steps.c.name,
    steps.c.round,
    steps.c.run_id,
    where="state = 'gated'",
)

batches = Table(
    "batches",
    metadata,
    Column("name", Text, primary_key=True),
    Column("pipeline", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("round", Integer, nullable=False),
    Column("runs", BigInteger, nullable=False),
    Column("running", BigInteger, nullable=False),
    Column("done", BigInteger, nullable=False),
    Column("failed", BigInteger, nullable=False),
    Column("cancelled", BigInteger, nullable=False),
    Column("forgotten", BigInteger, nullable=False, server_default="0"),  # of `runs`
)

phases = Table(  # how many steps of a batch stand in each state, kept up by every commit
    "phases",
    metadata,
    Column("batch", Text, nullable=False),
    Column("step", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("n", BigInteger, nullable=False),
    PrimaryKeyConstraint("batch", "step", "state"),
)

gates = Table(  # one row per batch, step that its batch waits for or at, and round
    "gates",
    metadata,
    Column("batch", Text, nullable=False),
    Column("step", Text, nullable=False),
    Column("round", Integer, nullable=False),
    Column("unsettled", BigInteger, nullable=False),  # runs that have not settled the steps before
    Column("waiting", BigInteger, nullable=False),  # runs that wait behind it
    Column("first_pass", BigInteger, nullable=False),  # runs whose first attempt is not over
    Column("opens_at", BigInteger),  # the timer, once everything has settled
    Column("opened_at", BigInteger),
    PrimaryKeyConstraint("batch", "step", "round"),
)
partial_index("gates_timer", gates.c.opens_at, where="opens_at IS NOT NULL AND waiting > 0")

catalog = Table(  # every version of every definition, for ever
    "catalog",
    metadata,
    Column("name", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("digest", Text, nullable=False),
    Column("definition", Text, nullable=False),  # JSON
    Column("source", Text, nullable=False),  # the text as it was given
    Column("created_at", BigInteger, nullable=False),
    PrimaryKeyConstraint("name", "version"),
)

ledger = Table(  # what must happen once: `job.once(key)`, `job.remaining(...)`
    "ledger",
    metadata,
    Column("scope", Text, nullable=False),  # run:7 or job:12
    Column("key", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
    PrimaryKeyConstraint("scope", "key"),
)
