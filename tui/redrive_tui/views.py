"""Filters with names, kept from one console to the next."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from redrive.errors import ConfigProblem


def views_path(environ: Mapping[str, str]) -> Path:
    """Where an operator's own views are kept."""
    home = environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(home, "redrive", "views.json")


class Views:
    """What has been saved, by name; without a path, for as long as the console lives."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self.filters = _read(path) if path is not None else {}

    def save(self, name: str, filter: str) -> None:
        self._keep({**self.filters, name: filter})

    def forget(self, name: str) -> None:
        self._keep({each: self.filters[each] for each in self.filters if each != name})

    def _keep(self, filters: dict[str, str]) -> None:
        """Written beside the old and put in its place: a full disk costs no view."""
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            written = self._path.with_suffix(".new")
            written.write_bytes(msgspec.json.format(msgspec.json.encode(filters)) + b"\n")
            written.replace(self._path)
        self.filters = filters


def _read(path: Path) -> dict[str, str]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, str])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError) as problem:
        raise ConfigProblem(
            f"the saved views in {path} cannot be read: {problem}",
            hint="mend that file, or remove it to begin anew",
        ) from problem
