from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.workers import Workshop, workshop


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Workshop]:
    """One worker that is ready."""
    async with workshop(tmp_path) as shop:
        yield shop
