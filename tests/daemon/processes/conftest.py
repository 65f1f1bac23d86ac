from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.processes import Workshop


@pytest.fixture
async def workshop(tmp_path: Path) -> AsyncIterator[Workshop]:
    workshop = Workshop(tmp_path)
    yield workshop
    await workshop.close()
