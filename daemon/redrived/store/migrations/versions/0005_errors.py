"""Jobs are found by the type of their last error, and by its group, in every state."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005_errors"
down_revision = "0004_outbox"


def upgrade() -> None:
    op.drop_index("jobs_failing", "jobs")
    _index("jobs_in_group", "fingerprint")
    _index("jobs_with_error", "error_type")


def _index(name: str, column: str) -> None:
    where = sa.text(f"{column} IS NOT NULL")  # a job that never failed is not in it
    columns = ["state", column, "id"]
    op.create_index(name, "jobs", columns, sqlite_where=where, postgresql_where=where)
