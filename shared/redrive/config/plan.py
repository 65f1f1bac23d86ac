"""What a reload would change: two configs in, the dotted keys that differ out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, cast

from msgspec import Struct

from redrive.config.lines import Key
from redrive.config.problems import dotted
from redrive.config.sections import Config
from redrive.config.written import members, tables

# Held open or bound once, at the start: sockets, the store, the folders, the node's own name.
FIXED = (
    "daemon.name",
    "daemon.state_dir",
    "daemon.runtime_dir",
    "store.url",
    "store.durability",
    "bus",
    "http.listen",
)

Change = tuple[Literal["added", "changed", "removed"], Key]


class Plan(Struct, frozen=True, kw_only=True):
    """Keys as people write them; a table that comes or goes is named as a whole."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    needs_restart: tuple[str, ...] = ()  # those of the above that a reload cannot change
    removed_tasks: tuple[str, ...] = ()  # what waits for one of these will go on waiting

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


def changes(old: Config, new: Config) -> Plan:
    """What differs between the two; values are not named, for they may be secret."""
    found = list(_differences(tables(old), tables(new), ()))
    return Plan(
        added=tuple(dotted(key) for how, key in found if how == "added"),
        changed=tuple(dotted(key) for how, key in found if how == "changed"),
        removed=tuple(dotted(key) for how, key in found if how == "removed"),
        needs_restart=tuple(dotted(key) for _, key in found if _is_fixed(dotted(key))),
        removed_tasks=tuple(sorted(old.tasks.keys() - new.tasks.keys())),
    )


def _differences(old: dict[str, Any], new: dict[str, Any], table: Key) -> Iterator[Change]:
    for name in old | new:
        key = (*table, name)
        was, will_be = old.get(name), new.get(name)
        if was == will_be:
            continue
        if was is None:
            yield "added", key
        elif will_be is None:
            yield "removed", key
        elif (before := _table(was)) is None or (after := _table(will_be)) is None:
            yield "changed", key
        else:
            yield from _differences(before, after, key)


def _table(value: object) -> dict[str, Any] | None:
    if isinstance(value, Struct):
        return members(value)
    return cast(dict[str, Any], value) if isinstance(value, dict) else None


def _is_fixed(key: str) -> bool:
    return any(f"{key}.".startswith(f"{fixed}.") or fixed.startswith(f"{key}.") for fixed in FIXED)
