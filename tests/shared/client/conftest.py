from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from redrive.client import AsyncClient
from support.peer import Peer, opened


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short enough for the path of a socket."""
    with tempfile.TemporaryDirectory(prefix="redrive-") as name:
        yield Path(name)


@pytest_asyncio.fixture
async def peer(folder: Path) -> AsyncIterator[Peer]:
    async with opened(folder) as peer:
        yield peer


@pytest_asyncio.fixture
async def client(peer: Peer) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(peer.addresses, timeout=5.0) as client:
        yield client
