"""Is this SQLite file ours? Asked before anything in it is believed, and before it is changed.

A store carries our application id in its header. What has none yet was made before there was
one, and is known by its tables.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy import Connection

from redrive.errors import ConfigProblem

APPLICATION_ID = int.from_bytes(b"rdrv", "big")
_OURS = {"alembic_version", "jobs", "tallies"}


def refuse_foreign(path: Path) -> None:
    """Refuse a file of another program or another user; one that is not there yet is ours."""
    try:
        owner = path.stat().st_uid
    except FileNotFoundError:
        return
    if owner != os.geteuid():
        raise ConfigProblem(
            f"the store {path} belongs to uid {owner}, the daemon runs as uid {os.geteuid()}",
            hint="`chown` it to the daemon's user, if you know where it came from",
        )
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as file:
            file.execute("PRAGMA trusted_schema = OFF")
            is_ours = has_our_mark(file)
    except sqlite3.Error:
        return  # damaged, busy or out of reach: opening it says so in its own words
    if not is_ours:
        raise ConfigProblem(
            f"{path} is a database of another program",
            hint="name another file in `[store] url`; it was not touched",
        )


def has_our_mark(file: sqlite3.Connection) -> bool:
    (mark,) = file.execute("PRAGMA application_id").fetchone()
    if mark != 0:
        return bool(mark == APPLICATION_ID)
    tables = {name for (name,) in file.execute("SELECT name FROM sqlite_schema")}
    return not tables or tables >= _OURS


def mark_as_ours(connection: Connection) -> None:
    """Within the caller's transaction; nothing is written when it bears the mark already."""
    if connection.exec_driver_sql("PRAGMA application_id").scalar_one() != APPLICATION_ID:
        connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
