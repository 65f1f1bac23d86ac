"""What was asked for: requests carried out, and orders laid in the outbox."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Identity, Index, Table, Text

from redrived.store.tables.common import Id, metadata, partial_index

receipts = Table(  # requests carried out, so that one sent twice does the thing once
    "receipts",
    metadata,
    Column("id", Id, primary_key=True),
    Column("at", BigInteger, nullable=False),
    Column("requests", Text, nullable=False),  # of one commit: [[who, id, checksum]...]
)
Index("receipts_at", receipts.c.at)

# What applications ask for inside transactions of their own, on PostgreSQL. They may insert the
# ticket, the task and the wish; the database itself fills in `id`, `by` and `at`.
outbox = Table(
    "outbox",
    metadata,
    Column("id", Id, Identity(always=True), primary_key=True),
    Column("ticket", Text, nullable=False),  # what its fate is asked by
    Column("task", Text, nullable=False),
    Column("wish", Text, nullable=False),  # a JobOrder as JSON; empty once it is a job
    Column("by", Text, nullable=False),  # the role that logged in
    Column("at", BigInteger, nullable=False),
    Column("outcome", Text),  # created | known | refused; NULL: its turn comes
    Column("job", BigInteger),
    Column("settled_at", BigInteger),
    Column("why", Text),
)
Index("outbox_ticket", outbox.c.ticket, unique=True)
partial_index("outbox_waiting", outbox.c.id, where="outcome IS NULL")
partial_index("outbox_refused", outbox.c.settled_at, where="outcome = 'refused'")
partial_index("outbox_job", outbox.c.job, where="job IS NOT NULL")
