"""What the tables have in common."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, ColumnElement, Index, Integer, MetaData, text

metadata = MetaData(
    naming_convention={"ix": "%(table_name)s_%(column_0_N_name)s", "pk": "%(table_name)s_pk"}
)

# SQLite makes a row id only of INTEGER; PostgreSQL needs eight bytes.
Id = BigInteger().with_variant(Integer(), "sqlite")


def partial_index(
    name: str, *columns: Column[Any] | ColumnElement[Any], where: str, unique: bool = False
) -> Index:
    """An index of the rows for which something holds, on both databases."""
    only = text(where)
    return Index(name, *columns, unique=unique, sqlite_where=only, postgresql_where=only)
