"""Batches say how many of their runs are forgotten."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002_forgotten_runs"
down_revision = "0001_first"


def upgrade() -> None:
    op.add_column(
        "batches", sa.Column("forgotten", sa.BigInteger(), nullable=False, server_default="0")
    )
