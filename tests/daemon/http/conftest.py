from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.http_side import Side, http_side


@pytest.fixture
async def side(tmp_path: Path) -> AsyncIterator[Side]:
    async with http_side(tmp_path) as made:
        yield made
