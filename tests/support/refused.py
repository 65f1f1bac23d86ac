"""What is said of a config that is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from redrive.config import ConfigRejected, Problem, load


def problems(path: Path, text: str | bytes) -> list[Problem]:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(ConfigRejected) as refused:
        load(path, {"TOKEN": "hunter2"})
    assert str(refused.value) == "\n".join(str(problem) for problem in refused.value.problems)
    return refused.value.problems
