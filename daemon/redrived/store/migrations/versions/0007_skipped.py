"""The jobs that a redrive skipped are counted by why, however many it has."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007_skipped"
down_revision = "0006_undo"


def upgrade() -> None:
    where = sa.text("outcome = 'skipped'")
    op.create_index(
        "redrive_jobs_skipped",
        "redrive_jobs",
        ["redrive", "why"],
        sqlite_where=where,
        postgresql_where=where,
    )
