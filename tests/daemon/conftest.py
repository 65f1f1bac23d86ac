from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from support.bus import Served, serving
from support.ice import Ice, an_ice


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short enough for the path of a socket."""
    with tempfile.TemporaryDirectory(prefix="redrive-") as name:
        yield Path(name)


@pytest_asyncio.fixture
async def served(folder: Path) -> AsyncIterator[Served]:
    async with serving(folder / "run") as served:
        yield served


@pytest.fixture
def ice() -> Iterator[Ice]:
    with an_ice() as made:
        yield made
