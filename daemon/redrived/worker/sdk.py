"""Lends the handler's half of `redrive` to an interpreter that has nothing of ours.

The application's own installation comes first: the finder stands at the end of the import
system and is asked only when nobody else knows `redrive`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from types import ModuleType

LENT = {"_version", "job", "outcomes"}


class Lender:
    def __init__(self, folder: str) -> None:
        self._folder = folder

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, module = name.partition(".")
        if package != "redrive":
            return None
        if not module:
            spec = spec_from_file_location(name, os.path.join(self._folder, "__init__.py"))
            if spec is not None:
                # No search path: what is not lent is found by nobody else either.
                spec.submodule_search_locations = []
            return spec
        if path:
            return None  # an installed `redrive` that has no such module
        if module in LENT:
            return spec_from_file_location(name, os.path.join(self._folder, module + ".py"))
        raise ModuleNotFoundError(
            f"{name} needs the redrive package, which is not installed for {sys.executable}; "
            "without it a handler has redrive.current_job, Permanent, Transient and Snooze",
            name=name,
        )


def lend(folder: str) -> None:
    """Make `import redrive` work; `folder` is the daemon's own copy."""
    sys.meta_path.append(Lender(folder))
