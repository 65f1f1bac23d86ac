"""Jobs, with an index for each thing that is asked of them often.

The indexes are partial wherever they can be, so that a million finished or sleeping rows weigh
nothing on a lease, and a job pays only for those it is in.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Integer, Table, Text

from redrived.store.tables.common import Id, metadata, partial_index

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
    Column("ending_reason", Text),  # as whoever asked for it gave it
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
partial_index(
    "jobs_ready",
    jobs.c.queue,
    jobs.c.task,
    jobs.c.rank,
    jobs.c.priority.desc(),
    jobs.c.available_at,
    jobs.c.id,
    where="waits = 'ready'",
)
partial_index("jobs_due", jobs.c.available_at, jobs.c.id, where="waits = 'due'")
partial_index(
    "jobs_behind_key",
    jobs.c.limit_key,
    jobs.c.rank,
    jobs.c.priority.desc(),
    jobs.c.available_at,
    jobs.c.id,
    where="waits = 'key'",
)
partial_index("jobs_behind_batch", jobs.c.batch, jobs.c.step, where="waits = 'batch'")
partial_index(
    "jobs_leased",
    jobs.c.node,
    jobs.c.queue,
    jobs.c.task,
    jobs.c.limit_key,
    where="state = 'leased'",
)
partial_index(
    "jobs_live",  # all that people look for: lists and counts never read what is done
    jobs.c.state,
    jobs.c.id,
    where="state <> 'done'",
)
partial_index(
    "jobs_unique",
    jobs.c.unique_key,
    unique=True,
    where="unique_key IS NOT NULL AND state IN ('queued', 'leased', 'retry')",
)
partial_index("jobs_run", jobs.c.run_id, where="run_id IS NOT NULL")
partial_index("jobs_finished", jobs.c.state, jobs.c.finished_at, where="finished_at IS NOT NULL")
partial_index(
    "jobs_in_group", jobs.c.state, jobs.c.fingerprint, jobs.c.id, where="fingerprint IS NOT NULL"
)
partial_index(
    "jobs_with_error", jobs.c.state, jobs.c.error_type, jobs.c.id, where="error_type IS NOT NULL"
)
