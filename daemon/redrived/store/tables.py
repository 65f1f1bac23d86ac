"""Every table of the store, the same on SQLite and PostgreSQL.

Instants are microseconds in a BIGINT, JSON is text: both databases then hold the same
bytes. Indexes on jobs are partial wherever they can be, so that a million finished or
sleeping rows weigh nothing on a lease.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Identity,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)

metadata = MetaData(
    naming_convention={"ix": "%(table_name)s_%(column_0_N_name)s", "pk": "%(table_name)s_pk"}
)

# SQLite makes a row id only of INTEGER; PostgreSQL needs eight bytes.
Id = BigInteger().with_variant(Integer(), "sqlite")

# What a waiting job waits for; NULL once it waits no more.
READY, DUE, KEY, HELD, BATCH = "ready", "due", "key", "held", "batch"

jobs = Table(
    "jobs",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False),
    Column("task", Text, nullable=False),
    Column("queue", Text, nullable=False),
    Column("operation", Text),
    Column("mode", Text),
    Column("priority", Integer, nullable=False),
    Column("rank", Integer, nullable=False),  # the place of its operation in the queue's order
    Column("state", Text, nullable=False),
    Column("waits", Text),  # ready | due | key | held | batch
    Column("reason", Text),
    Column("attempts", Integer, nullable=False),
    Column("max_attempts", Integer, nullable=False),
    Column("life", Integer, nullable=False),
    Column("lease", Integer, nullable=False),
    Column("leased_from", Text),
    Column("executions", Integer, nullable=False),
    Column("available_at", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("life_started_at", BigInteger, nullable=False),
    Column("started_at", BigInteger),
    Column("finished_at", BigInteger),
    Column("last_attempt_at", BigInteger),
    Column("heartbeat_at", BigInteger),
    Column("scheduled_for", BigInteger),
    Column("node", Text),
    Column("ending_by", Text),
    Column("ending", Text),  # asked or noticed while leased: cancel | kill | restart | stalled | …
    Column("lost", Integer, nullable=False),
    Column("unknowns", Integer, nullable=False),  # failures of this life nobody could classify
    Column("manual_retries", Integer, nullable=False),
    Column("manual_at", BigInteger),
    Column("interruptions", Integer, nullable=False),
    Column("snoozes", Integer, nullable=False),
    Column("run_id", BigInteger),
    Column("step", Text),
    Column("batch", Text),
    Column("pinned", Text),  # PIPELINE@VERSION, where the policy of a step is written
    Column("unique_key", Text),
    Column("limit_key", Text),  # the rendered concurrency_key
    Column("error_type", Text),
    Column("fingerprint", Text),
    Column("args", Text, nullable=False),
    Column("error", Text),
    Column("result", Text),
    Column("metrics", Text),
    Column("progress", Text),
)

Index(
    "jobs_ready",
    jobs.c.queue,
    jobs.c.task,
    jobs.c.rank,
    jobs.c.priority.desc(),
    jobs.c.available_at,
    jobs.c.id,
    sqlite_where=text("waits = 'ready'"),
    postgresql_where=text("waits = 'ready'"),
)
Index(
    "jobs_due",
    jobs.c.available_at,
    jobs.c.id,
    sqlite_where=text("waits = 'due'"),
    postgresql_where=text("waits = 'due'"),
)
Index(
    "jobs_behind_key",
    jobs.c.limit_key,
    jobs.c.rank,
    jobs.c.priority.desc(),
    jobs.c.available_at,
    jobs.c.id,
    sqlite_where=text("waits = 'key'"),
    postgresql_where=text("waits = 'key'"),
)
Index(
    "jobs_behind_batch",
    jobs.c.batch,
    jobs.c.step,
    sqlite_where=text("waits = 'batch'"),
    postgresql_where=text("waits = 'batch'"),
)
Index(
    "jobs_leased",
    jobs.c.node,
    jobs.c.queue,
    jobs.c.task,
    jobs.c.limit_key,
    sqlite_where=text("state = 'leased'"),
    postgresql_where=text("state = 'leased'"),
)
Index(
    "jobs_live",  # all that people look for: lists and counts never read what is done
    jobs.c.state,
    jobs.c.id,
    sqlite_where=text("state <> 'done'"),
    postgresql_where=text("state <> 'done'"),
)
Index(
    "jobs_unique",
    jobs.c.unique_key,
    unique=True,
    sqlite_where=text("unique_key IS NOT NULL AND state IN ('queued', 'leased', 'retry')"),
    postgresql_where=text("unique_key IS NOT NULL AND state IN ('queued', 'leased', 'retry')"),
)
Index(
    "jobs_run",
    jobs.c.run_id,
    sqlite_where=text("run_id IS NOT NULL"),
    postgresql_where=text("run_id IS NOT NULL"),
)
Index(
    "jobs_finished",
    jobs.c.state,
    jobs.c.finished_at,
    sqlite_where=text("finished_at IS NOT NULL"),
    postgresql_where=text("finished_at IS NOT NULL"),
)
Index(
    "jobs_in_group",
    jobs.c.state,
    jobs.c.fingerprint,
    jobs.c.id,
    sqlite_where=text("fingerprint IS NOT NULL"),
    postgresql_where=text("fingerprint IS NOT NULL"),
)
Index(
    "jobs_with_error",
    jobs.c.state,
    jobs.c.error_type,
    jobs.c.id,
    sqlite_where=text("error_type IS NOT NULL"),
    postgresql_where=text("error_type IS NOT NULL"),
)

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
Index(
    "events_job",
    events.c.job,
    sqlite_where=text("job IS NOT NULL"),
    postgresql_where=text("job IS NOT NULL"),
)
Index(
    "events_run",
    events.c.run,
    sqlite_where=text("run IS NOT NULL"),
    postgresql_where=text("run IS NOT NULL"),
)
Index(
    "events_rest",  # those that live by age, not with a job
    events.c.at,
    sqlite_where=text("job IS NULL"),
    postgresql_where=text("job IS NULL"),
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
Index(
    "runs_batch",
    runs.c.batch,
    runs.c.id,
    sqlite_where=text("batch IS NOT NULL"),
    postgresql_where=text("batch IS NOT NULL"),
)
Index("runs_key", runs.c.pipeline, runs.c.key)
Index(
    "runs_finished",
    runs.c.finished_at,
    sqlite_where=text("finished_at IS NOT NULL"),
    postgresql_where=text("finished_at IS NOT NULL"),
)

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
Index(
    "steps_gated",
    steps.c.batch,
    steps.c.name,
    steps.c.round,
    steps.c.run_id,
    sqlite_where=text("state = 'gated'"),
    postgresql_where=text("state = 'gated'"),
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
Index(
    "gates_timer",
    gates.c.opens_at,
    sqlite_where=text("opens_at IS NOT NULL AND waiting > 0"),
    postgresql_where=text("opens_at IS NOT NULL AND waiting > 0"),
)

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

redrives = Table(
    "redrives",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False),
    Column("state", Text, nullable=False),  # canary | running | paused | stopped | done | undone
    Column("created_at", BigInteger, nullable=False),
    Column("by", Text, nullable=False),
    Column("filter", Text),
    Column("options", Text, nullable=False),  # canary, pace, stop_at, from, reason: JSON
    Column("total", BigInteger, nullable=False),
    Column("requeued", BigInteger, nullable=False),
    Column("skipped", BigInteger, nullable=False),
    Column("succeeded", BigInteger, nullable=False),
    Column("failed", BigInteger, nullable=False),
    Column("finished_at", BigInteger),
    Column("why", Text),
)

redrive_jobs = Table(
    "redrive_jobs",
    metadata,
    Column("redrive", BigInteger, nullable=False),
    Column("job", BigInteger, nullable=False),
    Column("life", Integer, nullable=False),  # the life it had when it was chosen, and
    Column("state", Text, nullable=False),  # what else an undo has to put back
    Column("reason", Text),
    Column("attempts", Integer, nullable=False),
    Column("finished_at", BigInteger),
    Column("outcome", Text),  # requeued | skipped | done | dead | undone; NULL: its turn comes
    Column("why", Text),
    PrimaryKeyConstraint("redrive", "job"),
)
Index(
    "redrive_jobs_to_come",
    redrive_jobs.c.redrive,
    redrive_jobs.c.job,
    sqlite_where=text("outcome IS NULL"),
    postgresql_where=text("outcome IS NULL"),
)

ledger = Table(  # what must happen once: `job.once(key)`, `job.remaining(...)`
    "ledger",
    metadata,
    Column("scope", Text, nullable=False),  # run:7 or job:12
    Column("key", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
    PrimaryKeyConstraint("scope", "key"),
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

receipts = Table(  # requests carried out, so that one sent twice does the thing once
    "receipts",
    metadata,
    Column("id", Id, primary_key=True),
    Column("at", BigInteger, nullable=False),
    Column("requests", Text, nullable=False),  # of one commit: [[who, id, checksum]...]
)
Index("receipts_at", receipts.c.at)

# What applications ask for inside transactions of their own, on PostgreSQL. They may insert the
# ticket, the task and the wish; the database itself fills in `id`, `by` and `at`.
outbox = Table(
    "outbox",
    metadata,
    Column("id", Id, Identity(always=True), primary_key=True),
    Column("ticket", Text, nullable=False),  # what its fate is asked by
    Column("task", Text, nullable=False),
    Column("wish", Text, nullable=False),  # a JobOrder as JSON; empty once it is a job
    Column("by", Text, nullable=False),  # the role that logged in
    Column("at", BigInteger, nullable=False),
    Column("outcome", Text),  # created | known | refused; NULL: its turn comes
    Column("job", BigInteger),
    Column("settled_at", BigInteger),
    Column("why", Text),
)
Index("outbox_ticket", outbox.c.ticket, unique=True)
Index(
    "outbox_waiting",
    outbox.c.id,
    sqlite_where=text("outcome IS NULL"),
    postgresql_where=text("outcome IS NULL"),
)
Index(
    "outbox_refused",
    outbox.c.settled_at,
    sqlite_where=text("outcome = 'refused'"),
    postgresql_where=text("outcome = 'refused'"),
)
Index(
    "outbox_job",
    outbox.c.job,
    sqlite_where=text("job IS NOT NULL"),
    postgresql_where=text("job IS NOT NULL"),
)
