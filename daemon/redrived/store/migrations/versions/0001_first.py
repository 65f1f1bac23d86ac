"""The first schema"""

import sqlalchemy as sa
from alembic import op

revision = "0001_first"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "batches",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("pipeline", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("runs", sa.BigInteger(), nullable=False),
        sa.Column("running", sa.BigInteger(), nullable=False),
        sa.Column("done", sa.BigInteger(), nullable=False),
        sa.Column("failed", sa.BigInteger(), nullable=False),
        sa.Column("cancelled", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("batches_pk")),
    )
    op.create_table(
        "breakers",
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("opened_at", sa.BigInteger(), nullable=False),
        sa.Column("probe_at", sa.BigInteger(), nullable=False),
        sa.Column("probe_job", sa.BigInteger(), nullable=True),
        sa.Column("why", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("task", name=op.f("breakers_pk")),
    )
    op.create_table(
        "catalog",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", "version", name=op.f("catalog_pk")),
    )
    op.create_table(
        "counters",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("counters_pk")),
    )
    op.create_table(
        "events",
        sa.Column(
            "seq",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("job", sa.BigInteger(), nullable=True),
        sa.Column("run", sa.BigInteger(), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=True),
        sa.Column("state", sa.Text(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=True),
        sa.Column("data", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("seq", name=op.f("events_pk")),
    )
    op.create_index(
        "events_job",
        "events",
        ["job"],
        unique=False,
        sqlite_where=sa.text("job IS NOT NULL"),
        postgresql_where=sa.text("job IS NOT NULL"),
    )
    op.create_index(
        "events_rest",
        "events",
        ["at"],
        unique=False,
        sqlite_where=sa.text("job IS NULL"),
        postgresql_where=sa.text("job IS NULL"),
    )
    op.create_index(
        "events_run",
        "events",
        ["run"],
        unique=False,
        sqlite_where=sa.text("run IS NOT NULL"),
        postgresql_where=sa.text("run IS NOT NULL"),
    )
    op.create_table(
        "facts",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("facts_pk")),
    )
    op.create_table(
        "gates",
        sa.Column("batch", sa.Text(), nullable=False),
        sa.Column("step", sa.Text(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("unsettled", sa.BigInteger(), nullable=False),
        sa.Column("waiting", sa.BigInteger(), nullable=False),
        sa.Column("first_pass", sa.BigInteger(), nullable=False),
        sa.Column("opens_at", sa.BigInteger(), nullable=True),
        sa.Column("opened_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("batch", "step", "round", name=op.f("gates_pk")),
    )
    op.create_index(
        "gates_timer",
        "gates",
        ["opens_at"],
        unique=False,
        sqlite_where=sa.text("opens_at IS NOT NULL AND waiting > 0"),
        postgresql_where=sa.text("opens_at IS NOT NULL AND waiting > 0"),
    )
    op.create_table(
        "jobs",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=True),
        sa.Column("mode", sa.Text(), nullable=True),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("waits", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("max_attempts", sa.Integer(), nullable=False),
        sa.Column("life", sa.Integer(), nullable=False),
        sa.Column("lease", sa.Integer(), nullable=False),
        sa.Column("leased_from", sa.Text(), nullable=True),
        sa.Column("executions", sa.Integer(), nullable=False),
        sa.Column("available_at", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("life_started_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.Column("last_attempt_at", sa.BigInteger(), nullable=True),
        sa.Column("heartbeat_at", sa.BigInteger(), nullable=True),
        sa.Column("scheduled_for", sa.BigInteger(), nullable=True),
        sa.Column("node", sa.Text(), nullable=True),
        sa.Column("ending_by", sa.Text(), nullable=True),
        sa.Column("ending", sa.Text(), nullable=True),
        sa.Column("lost", sa.Integer(), nullable=False),
        sa.Column("unknowns", sa.Integer(), nullable=False),
        sa.Column("manual_retries", sa.Integer(), nullable=False),
        sa.Column("manual_at", sa.BigInteger(), nullable=True),
        sa.Column("interruptions", sa.Integer(), nullable=False),
        sa.Column("snoozes", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.BigInteger(), nullable=True),
        sa.Column("step", sa.Text(), nullable=True),
        sa.Column("batch", sa.Text(), nullable=True),
        sa.Column("pinned", sa.Text(), nullable=True),
        sa.Column("unique_key", sa.Text(), nullable=True),
        sa.Column("limit_key", sa.Text(), nullable=True),
        sa.Column("error_type", sa.Text(), nullable=True),
        sa.Column("fingerprint", sa.Text(), nullable=True),
        sa.Column("args", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("metrics", sa.Text(), nullable=True),
        sa.Column("progress", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("jobs_pk")),
    )
    op.create_index(
        "jobs_behind_batch",
        "jobs",
        ["batch", "step"],
        unique=False,
        sqlite_where=sa.text("waits = 'batch'"),
        postgresql_where=sa.text("waits = 'batch'"),
    )
    op.create_index(
        "jobs_behind_key",
        "jobs",
        ["limit_key", "rank", sa.literal_column("priority DESC"), "available_at", "id"],
        unique=False,
        sqlite_where=sa.text("waits = 'key'"),
        postgresql_where=sa.text("waits = 'key'"),
    )
    op.create_index(
        "jobs_due",
        "jobs",
        ["available_at", "id"],
        unique=False,
        sqlite_where=sa.text("waits = 'due'"),
        postgresql_where=sa.text("waits = 'due'"),
    )
    op.create_index(
        "jobs_failing",
        "jobs",
        ["fingerprint", "id"],
        unique=False,
        sqlite_where=sa.text("fingerprint IS NOT NULL AND state IN ('dead', 'retry')"),
        postgresql_where=sa.text("fingerprint IS NOT NULL AND state IN ('dead', 'retry')"),
    )
    op.create_index(
        "jobs_finished",
        "jobs",
        ["state", "finished_at"],
        unique=False,
        sqlite_where=sa.text("finished_at IS NOT NULL"),
        postgresql_where=sa.text("finished_at IS NOT NULL"),
    )
    op.create_index(
        "jobs_leased",
        "jobs",
        ["node", "queue", "task", "limit_key"],
        unique=False,
        sqlite_where=sa.text("state = 'leased'"),
        postgresql_where=sa.text("state = 'leased'"),
    )
    op.create_index(
        "jobs_live",
        "jobs",
        ["state", "id"],
        unique=False,
        sqlite_where=sa.text("state <> 'done'"),
        postgresql_where=sa.text("state <> 'done'"),
    )
    op.create_index(
        "jobs_ready",
        "jobs",
        ["queue", "task", "rank", sa.literal_column("priority DESC"), "available_at", "id"],
        unique=False,
        sqlite_where=sa.text("waits = 'ready'"),
        postgresql_where=sa.text("waits = 'ready'"),
    )
    op.create_index(
        "jobs_run",
        "jobs",
        ["run_id"],
        unique=False,
        sqlite_where=sa.text("run_id IS NOT NULL"),
        postgresql_where=sa.text("run_id IS NOT NULL"),
    )
    op.create_index(
        "jobs_unique",
        "jobs",
        ["unique_key"],
        unique=True,
        sqlite_where=sa.text("unique_key IS NOT NULL AND state IN ('queued', 'leased', 'retry')"),
        postgresql_where=sa.text(
            "unique_key IS NOT NULL AND state IN ('queued', 'leased', 'retry')"
        ),
    )
    op.create_table(
        "leaders",
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("term", sa.BigInteger(), nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("role", name=op.f("leaders_pk")),
    )
    op.create_table(
        "ledger",
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("scope", "key", name=op.f("ledger_pk")),
    )
    op.create_table(
        "nodes",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("beat_at", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("facts", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("nodes_pk")),
    )
    op.create_table(
        "pauses",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("kind", "name", name=op.f("pauses_pk")),
    )
    op.create_table(
        "phases",
        sa.Column("batch", sa.Text(), nullable=False),
        sa.Column("step", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("n", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("batch", "step", "state", name=op.f("phases_pk")),
    )
    op.create_table(
        "receipts",
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("reply", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("request", name=op.f("receipts_pk")),
    )
    op.create_table(
        "redrive_jobs",
        sa.Column("redrive", sa.BigInteger(), nullable=False),
        sa.Column("job", sa.BigInteger(), nullable=False),
        sa.Column("life", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("why", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("redrive", "job", name=op.f("redrive_jobs_pk")),
    )
    op.create_index(
        "redrive_jobs_to_come",
        "redrive_jobs",
        ["redrive", "job"],
        unique=False,
        sqlite_where=sa.text("outcome IS NULL"),
        postgresql_where=sa.text("outcome IS NULL"),
    )
    op.create_table(
        "redrives",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("filter", sa.Text(), nullable=True),
        sa.Column("options", sa.Text(), nullable=False),
        sa.Column("total", sa.BigInteger(), nullable=False),
        sa.Column("requeued", sa.BigInteger(), nullable=False),
        sa.Column("skipped", sa.BigInteger(), nullable=False),
        sa.Column("succeeded", sa.BigInteger(), nullable=False),
        sa.Column("failed", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.Column("why", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("redrives_pk")),
    )
    op.create_table(
        "runs",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("pipeline", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("batch", sa.Text(), nullable=True),
        sa.Column("key", sa.Text(), nullable=True),
        sa.Column("mode", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("args", sa.Text(), nullable=False),
        sa.Column("metrics", sa.Text(), nullable=True),
        sa.Column("last_completed", sa.Text(), nullable=True),
        sa.Column("manual_retries", sa.Integer(), nullable=False),
        sa.Column("manual_at", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("runs_pk")),
    )
    op.create_index(
        "runs_batch",
        "runs",
        ["batch", "id"],
        unique=False,
        sqlite_where=sa.text("batch IS NOT NULL"),
        postgresql_where=sa.text("batch IS NOT NULL"),
    )
    op.create_index(
        "runs_finished",
        "runs",
        ["finished_at"],
        unique=False,
        sqlite_where=sa.text("finished_at IS NOT NULL"),
        postgresql_where=sa.text("finished_at IS NOT NULL"),
    )
    op.create_index("runs_key", "runs", ["pipeline", "key"], unique=False)
    op.create_table(
        "schedules",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("last_slot", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("schedules_pk")),
    )
    op.create_table(
        "slots",
        sa.Column("schedule", sa.Text(), nullable=False),
        sa.Column("slot", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("job", sa.BigInteger(), nullable=True),
        sa.Column("run", sa.BigInteger(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("schedule", "slot", name=op.f("slots_pk")),
    )
    op.create_table(
        "starts",
        sa.Column("lane", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("job", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("lane", "at", "job", name=op.f("starts_pk")),
    )
    op.create_table(
        "steps",
        sa.Column("run_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("job", sa.BigInteger(), nullable=True),
        sa.Column("clearing", sa.BigInteger(), nullable=True),
        sa.Column("scheduled_for", sa.BigInteger(), nullable=True),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("why", sa.Text(), nullable=True),
        sa.Column("batch", sa.Text(), nullable=True),
        sa.Column("round", sa.Integer(), nullable=True),
        sa.Column("passed", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "name", name=op.f("steps_pk")),
    )
    op.create_index(
        "steps_gated",
        "steps",
        ["batch", "name", "round", "run_id"],
        unique=False,
        sqlite_where=sa.text("state = 'gated'"),
        postgresql_where=sa.text("state = 'gated'"),
    )
    op.create_table(
        "tallies",
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("n", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("node", "queue", "task", "state", name=op.f("tallies_pk")),
    )
    op.execute(
        "INSERT INTO counters (name, value) VALUES ('seq', 0), ('job', 0), ('run', 0), ('redrive', 0)"
    )
