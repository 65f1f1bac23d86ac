"""Redrives, and the jobs chosen for each."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Integer, PrimaryKeyConstraint, Table, Text

from redrived.store.tables.common import Id, metadata, partial_index

redrives = Table(
    "redrives",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False),
    # canary | running | paused | watching | stopped | done | undone
    Column("state", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("by", Text, nullable=False),
    Column("filter", Text),
    Column("options", Text, nullable=False),  # canary, pace, stop_at, reason, force: JSON
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
    Column("manual_at", BigInteger),
    Column("run_manual_retries", BigInteger),
    Column("run_manual_at", BigInteger),
    Column("run_finished_at", BigInteger),
    Column("outcome", Text),  # requeued | skipped | done | dead | undone; NULL: its turn comes
    Column("why", Text),
    PrimaryKeyConstraint("redrive", "job"),
)
partial_index(
    "redrive_jobs_to_come", redrive_jobs.c.redrive, redrive_jobs.c.job, where="outcome IS NULL"
)
partial_index(
    "redrive_jobs_skipped", redrive_jobs.c.redrive, redrive_jobs.c.why, where="outcome = 'skipped'"
)
