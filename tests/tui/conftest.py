"""What the tests of the console share: a Textual that waits no longer than it has to."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
import textual.app
import textual.pilot


async def until_idle(min_sleep: float = 0, max_sleep: float = 0) -> None:
    """Until nobody has anything to do at once.

    Textual guesses that from the CPU it used in steps of 20 ms, several for every key.
    """
    loop = cast("Any", asyncio.get_running_loop())
    while loop._ready:
        await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def _no_longer_than_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (textual.app, textual.pilot):
        monkeypatch.setattr(module, "wait_for_idle", until_idle)
