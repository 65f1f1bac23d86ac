"""A config as the tables and keys of a file, under the names that people write."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import fields

from redrive.config.sections import Config


def tables(config: Config) -> dict[str, Any]:
    found = members(config)
    for name in ("folder", "path", "secrets"):  # about the file, no keys of it
        del found[name]
    found["retry"] = {**config.retry, "manual": found.pop("manual_retry")}
    return found


def members(section: Struct) -> dict[str, Any]:
    return {field.encode_name: getattr(section, field.name) for field in fields(section)}
