"""Where a SQLite file lies: over a network its locks do not hold, and it comes to harm."""

from __future__ import annotations

from pathlib import Path

from redrive.errors import ConfigProblem
from redrive.filesystems import is_over_a_network, kind_of


def refuse_network(path: Path) -> None:
    kind = kind_of(path)
    if is_over_a_network(kind):
        raise ConfigProblem(
            f"the store {path} lies on a network filesystem ({kind}), where SQLite's locks fail",
            hint="put `[daemon] state_dir` on a local disk, or use PostgreSQL",
        )
