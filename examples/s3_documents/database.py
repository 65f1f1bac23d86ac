"""What the stages keep: a SQLite database of the application's own, a table for each stage."""

import json
import sqlite3
from array import array
from contextlib import contextmanager
from pathlib import Path

PATH = Path("data/documents.db")
PATIENCE = 5  # seconds; then it is locked

TABLES = {"parse": "chunks", "embed": "vectors", "analyze": "analyses"}
SCHEMA = """
CREATE TABLE IF NOT EXISTS chunks (document, place, text, PRIMARY KEY (document, place));
CREATE TABLE IF NOT EXISTS vectors (document, place, vector, PRIMARY KEY (document, place));
CREATE TABLE IF NOT EXISTS analyses (document PRIMARY KEY, found);
CREATE TABLE IF NOT EXISTS finished (document, stage, PRIMARY KEY (document, stage));
"""


class Database:
    def __init__(self, connection):
        self._connection = connection

    def has(self, document, stage):
        """Whether a stage is done, not merely begun."""
        rows = self._all("SELECT 1 FROM finished WHERE document = ? AND stage = ?", document, stage)
        return bool(rows)

    def finish(self, document, stage):
        self._write("INSERT OR IGNORE INTO finished VALUES (?, ?)", document, stage)

    def clear(self, document, stage):
        self._write("DELETE FROM finished WHERE document = ? AND stage = ?", document, stage)
        self._write(f"DELETE FROM {TABLES[stage]} WHERE document = ?", document)

    def add_chunks(self, document, chunks):
        for place, text in enumerate(chunks):
            self._write("INSERT OR REPLACE INTO chunks VALUES (?, ?, ?)", document, place, text)

    def chunks(self, document):
        rows = self._all("SELECT text FROM chunks WHERE document = ? ORDER BY place", document)
        return [text for (text,) in rows]

    def add_vector(self, document, place, vector):
        packed = array("f", vector).tobytes()
        self._write("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", document, place, packed)

    def vectors(self):
        """Those of every document, in the order of their chunks."""
        found = {}
        for document, packed in self._all(
            "SELECT document, vector FROM vectors ORDER BY document, place"
        ):
            found.setdefault(document, []).append(array("f", packed))
        return found

    def add_analysis(self, document, found):
        self._write("INSERT OR REPLACE INTO analyses VALUES (?, ?)", document, json.dumps(found))

    def _all(self, query, *values):
        return self._connection.execute(query, values).fetchall()

    def _write(self, statement, *values):
        with self._connection as transaction:
            transaction.execute(statement, values)


@contextmanager
def opened():
    PATH.parent.mkdir(exist_ok=True)
    connection = sqlite3.connect(PATH, timeout=PATIENCE)
    try:
        connection.executescript(SCHEMA)
        yield Database(connection)
    finally:
        connection.close()
