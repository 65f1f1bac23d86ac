"""Bring the schema to the version of this program, or refuse.

Alembic is imported only when there is something to migrate: most starts find everything
in place.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, inspect, text

from redrive.errors import ConfigProblem

FOLDER = Path(__file__).parent / "migrations"


def known_versions() -> list[str]:
    """Every version this program knows, oldest first: the names of the migration files."""
    return sorted(path.stem for path in (FOLDER / "versions").glob("[0-9]*.py"))


def current_version(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    version: str | None = connection.execute(
        text("SELECT version_num FROM alembic_version")
    ).scalar()
    return version


def migrate(connection: Connection) -> bool:
    """Bring the schema up to date within the caller's transaction; True if that took work."""
    versions = known_versions()
    current = current_version(connection)
    if current == versions[-1]:
        return False
    if current is not None and current not in versions:
        raise ConfigProblem(
            f"the store was written by a newer redrive (schema {current})",
            hint=f"this one knows {versions[-1]}: install the newer version, or restore a backup",
        )
    # Its templates would bring a highlighter of syntax along, for pages of errors nobody sees.
    sys.modules.setdefault("mako.ext.pygmentplugin", None)  # type: ignore[arg-type]
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(FOLDER))
    config.attributes["connection"] = connection
    with _unhurried(connection):
        command.upgrade(config, "head")
    return True


@contextmanager
def _unhurried(connection: Connection) -> Generator[None]:
    """A large table takes its time: no deadline of PostgreSQL's may end what would begin anew."""
    if connection.dialect.name == "sqlite":
        yield
        return
    raw: Any = connection.connection.dbapi_connection
    connection.execute(text("SET LOCAL statement_timeout = 0"))
    raw.within = math.inf
    try:
        yield
    finally:
        raw.within = None
