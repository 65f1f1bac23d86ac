"""Every version of every pipeline's definition: written once, kept for ever."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct
from sqlalchemy import Connection, text

from redrive.pipelines.definition import Definition, decode, digest, encode
from redrived.store.unit import Unit


class Version(NamedTuple):
    name: str
    version: int


class Registration(Struct, frozen=True, kw_only=True):
    definition: Definition
    source: str  # the text as it was given
    by: str | None = None  # who asked for it; None: the config says so


class Entry(Struct, frozen=True, kw_only=True):
    """A version as it lies in the catalog."""

    name: str
    version: int
    definition: Definition
    source: str
    created_at: int


def register(unit: Unit, items: Sequence[Registration]) -> list[Entry]:
    """Add a version where the definition differs from the latest one; answers with the latest."""
    return [_register(unit, item) for item in items]


def register_all(unit: Unit, configs: Sequence[Sequence[Registration]]) -> list[None]:
    """The same for all that a config makes: where one cannot be added, none is."""
    for made in configs:
        register(unit, made)
    return [None] * len(configs)


def _register(unit: Unit, item: Registration) -> Entry:
    name, definition = item.definition.name, encode(item.definition)
    latest = unit.execute(
        f"SELECT {_ENTRY}, digest FROM catalog WHERE name = :name ORDER BY version DESC LIMIT 1",
        name=name,
    ).first()
    version = 1
    if latest is not None:
        *columns, known_digest = latest
        known = _entry(columns)
        if known_digest == digest(definition):
            return known
        version = known.version + 1
    unit.execute(
        "INSERT INTO catalog (name, version, digest, definition, source, created_at)"
        " VALUES (:name, :version, :digest, :definition, :source, :now)",
        name=name,
        version=version,
        digest=digest(definition),
        definition=definition,
        source=item.source,
        now=unit.now,
    )
    if item.by is not None:
        unit.emit("pipeline_added", data={"name": name, "version": version, "by": item.by})
    return Entry(
        name=name,
        version=version,
        definition=item.definition,
        source=item.source,
        created_at=unit.now,
    )


def definitions(unit: Unit, versions: Iterable[Version]) -> dict[Version, Definition]:
    """What these versions say, for operations of the store."""
    found = unit.over(
        sorted(set(versions)),
        "SELECT catalog.name, catalog.version, catalog.definition"
        f" FROM {unit.database.rows('name', 'version int')}"
        " JOIN catalog ON catalog.name = r.name AND catalog.version = r.version",
    )
    return {Version(name, version): decode(written) for name, version, written in found}


def read(connection: Connection, name: str, version: int | None = None) -> Entry | None:
    """One version, or the latest."""
    row = connection.execute(
        text(
            f"SELECT {_ENTRY} FROM catalog WHERE name = :name"
            f"{'' if version is None else ' AND version = :version'}"
            " ORDER BY version DESC LIMIT 1"
        ),
        {"name": name} if version is None else {"name": name, "version": version},
    ).first()
    return None if row is None else _entry(row)


def size(connection: Connection) -> int:
    """How many versions there are; none ever goes."""
    return int(connection.execute(text("SELECT count(*) FROM catalog")).scalar_one())


def in_use(connection: Connection) -> list[Entry]:
    """The latest version of each pipeline, and every other that a run still names."""
    rows = connection.execute(
        text(
            f"SELECT {_ENTRY} FROM catalog WHERE (name, version) IN"
            " (SELECT name, max(version) FROM catalog GROUP BY name"
            " UNION SELECT DISTINCT pipeline, version FROM runs)"
            " ORDER BY name, version"
        )
    )
    return [_entry(row) for row in rows]


_ENTRY = "name, version, definition, source, created_at"


def _entry(row: Sequence[object]) -> Entry:
    name, version, definition, source, created_at = row
    return Entry(
        name=str(name),
        version=int(str(version)),
        definition=decode(str(definition)),
        source=str(source),
        created_at=int(str(created_at)),
    )
