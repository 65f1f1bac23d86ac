"""Examples that are gone when their test is over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.examples import Example, FlakyServer, MakeExample


@pytest.fixture
def example(tmp_path: Path) -> Iterator[MakeExample]:
    """Starts one of them, by its folder's name."""
    made: list[Example] = []

    def make(name: str, **env: str) -> Example:
        made.append(Example(name, tmp_path, **env))
        return made[-1].start()

    yield make
    for each in made:
        each.end()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FlakyServer]:
    made = FlakyServer(tmp_path)
    yield made
    made.end()
