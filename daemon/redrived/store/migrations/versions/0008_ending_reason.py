"""The reason for which a running attempt is to be ended is kept until it has ended."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008_ending_reason"
down_revision = "0007_skipped"


def upgrade() -> None:
    op.add_column("jobs", sa.Column("ending_reason", sa.Text(), nullable=True))
