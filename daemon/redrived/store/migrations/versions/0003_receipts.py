"""What requests were carried out is written, a row for each commit."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003_receipts"
down_revision = "0002_forgotten_runs"


def upgrade() -> None:
    op.drop_table("receipts")  # nothing was ever written to it
    op.create_table(
        "receipts",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("requests", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("receipts_pk")),
    )
    op.create_index("receipts_at", "receipts", ["at"])
