"""Every table of the store, the same on SQLite and PostgreSQL.

Instants are microseconds in a BIGINT, JSON is text: both databases then hold the same bytes.
"""

from redrived.store.tables.common import metadata
from redrived.store.tables.job import BATCH, DUE, HELD, KEY, READY, jobs
from redrived.store.tables.log import counters, events, facts, tallies
from redrived.store.tables.node import breakers, leaders, nodes, pauses, starts
from redrived.store.tables.redrive import redrive_jobs, redrives
from redrived.store.tables.request import outbox, receipts
from redrived.store.tables.run import batches, catalog, gates, ledger, phases, runs, steps
from redrived.store.tables.schedule import schedules, slots

__all__ = [
    "BATCH",
    "DUE",
    "HELD",
    "KEY",
    "READY",
    "batches",
    "breakers",
    "catalog",
    "counters",
    "events",
    "facts",
    "gates",
    "jobs",
    "leaders",
    "ledger",
    "metadata",
    "nodes",
    "outbox",
    "pauses",
    "phases",
    "receipts",
    "redrive_jobs",
    "redrives",
    "runs",
    "schedules",
    "slots",
    "starts",
    "steps",
    "tallies",
]
