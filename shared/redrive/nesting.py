"""How deep values may be nested: whoever reads them recursively must not run out of stack."""

from __future__ import annotations

from typing import cast

from redrive.models import Json

MOST = 100  # levels


def is_deep(value: Json, levels: int = MOST) -> bool:
    """Whether lists and tables lie in each other for more levels than everybody can read."""
    if isinstance(value, dict):
        inside = list(cast("dict[str, Json]", value).values())
    elif isinstance(value, (list, tuple)):
        inside = list(cast("list[Json]", value))
    else:
        return False
    return levels == 0 or any(is_deep(each, levels - 1) for each in inside)
