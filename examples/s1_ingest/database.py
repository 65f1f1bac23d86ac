"""Where stanzas end up: a SQLite database of the application's own.

Its unique key makes a retry harmless: a stanza that exists is skipped, whoever wrote it.
"""

import json
import sqlite3
from contextlib import contextmanager
from pathlib import Path

PATH = Path("data/stanzas.db")
PATIENCE = 5  # seconds; then it is locked

SCHEMA = """
CREATE TABLE IF NOT EXISTS stanzas (
    run TEXT, file TEXT, name TEXT, source_path TEXT, settings TEXT,
    UNIQUE (run, file, name, source_path)
);
CREATE TABLE IF NOT EXISTS completed (run TEXT PRIMARY KEY, counts TEXT);
"""


class Database:
    def __init__(self, connection):
        self._connection = connection

    def completed(self, run):
        """What was counted when the run became complete; None: it is not."""
        found = self._one("SELECT counts FROM completed WHERE run = ?", run)
        return found and json.loads(found[0])

    def add(self, run, source_path, stanzas):
        """Those of one file, in one transaction; how many of them are new."""
        file = source_path.rpartition("/")[2]
        rows = [
            (run, file, name, source_path, json.dumps(settings))
            for name, settings in stanzas.items()
        ]
        with self._connection as transaction:
            before = transaction.total_changes
            transaction.executemany("INSERT OR IGNORE INTO stanzas VALUES (?, ?, ?, ?, ?)", rows)
            return transaction.total_changes - before

    def count(self, run):
        return self._one("SELECT count(*) FROM stanzas WHERE run = ?", run)[0]

    def complete(self, run, counts):
        row = (run, json.dumps(counts))
        with self._connection as transaction:
            transaction.execute("INSERT OR IGNORE INTO completed VALUES (?, ?)", row)

    def _one(self, query, *values):
        return self._connection.execute(query, values).fetchone()


@contextmanager
def opened():
    PATH.parent.mkdir(exist_ok=True)
    connection = sqlite3.connect(PATH, timeout=PATIENCE)
    try:
        connection.executescript(SCHEMA)
        yield Database(connection)
    finally:
        connection.close()
