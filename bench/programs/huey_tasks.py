"""Huey on SQLite as durable as it can be had: WAL, and fsync on every commit."""

from huey import SqliteHuey
from noting import note_age

huey = SqliteHuey(filename="huey.db", results=False, fsync=True, journal_mode="wal", timeout=30)


@huey.task()
def noop() -> None:
    pass


@huey.task()
def age(sent: float) -> None:
    note_age(sent)
