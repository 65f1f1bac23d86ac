"""Events about the daemon itself, which come with no change of a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from redrived.store.unit import Unit


class Said(NamedTuple):
    kind: str
    data: dict[str, Any]


def say(unit: Unit, items: Sequence[Said]) -> list[None]:
    for kind, data in items:
        unit.emit(kind, data={"node": unit.node, **data})
    return [None] * len(items)
