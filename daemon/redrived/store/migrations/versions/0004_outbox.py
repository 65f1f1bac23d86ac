"""Applications enqueue inside transactions of their own, on PostgreSQL."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004_outbox"
down_revision = "0003_receipts"


def upgrade() -> None:
    op.create_table(
        "outbox",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            sa.Identity(always=True),
            nullable=False,
        ),
        sa.Column("ticket", sa.Text(), nullable=False),
        sa.Column("task", sa.Text(), nullable=False),
        sa.Column("wish", sa.Text(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("job", sa.BigInteger(), nullable=True),
        sa.Column("settled_at", sa.BigInteger(), nullable=True),
        sa.Column("why", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("outbox_pk")),
    )
    op.create_index("outbox_ticket", "outbox", ["ticket"], unique=True)
    _create_partial_index("outbox_waiting", "id", "outcome IS NULL")
    _create_partial_index("outbox_refused", "settled_at", "outcome = 'refused'")
    _create_partial_index("outbox_job", "job", "job IS NOT NULL")
    if op.get_bind().dialect.name == "postgresql":
        _fill_in_what_nobody_may_claim()
        _refuse_what_is_too_large()


def _create_partial_index(name: str, column: str, condition: str) -> None:
    where = sa.text(condition)
    op.create_index(name, "outbox", [column], sqlite_where=where, postgresql_where=where)


def _fill_in_what_nobody_may_claim() -> None:
    instant = "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)"
    op.alter_column("outbox", "ticket", server_default=sa.text("CAST(gen_random_uuid() AS text)"))
    op.alter_column("outbox", "wish", server_default="{}")
    op.alter_column("outbox", "by", server_default=sa.text("session_user"))
    op.alter_column("outbox", "at", server_default=sa.text(instant))


def _refuse_what_is_too_large() -> None:
    """In the application's transaction: what is in the table, the nodes have to read."""
    for column, shortest, longest in (("ticket", 1, 64), ("task", 1, 200), ("wish", 0, 2_500_000)):
        op.create_check_constraint(
            f"outbox_{column}_fits", "outbox", f"length({column}) BETWEEN {shortest} AND {longest}"
        )
