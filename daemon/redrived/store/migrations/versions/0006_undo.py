"""An undo knows when a job was requeued before, and how its run had ended."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006_undo"
down_revision = "0005_errors"


def upgrade() -> None:
    for name in ("manual_at", "run_manual_retries", "run_manual_at", "run_finished_at"):
        op.add_column("redrive_jobs", sa.Column(name, sa.BigInteger(), nullable=True))
