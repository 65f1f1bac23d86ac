"""What wakes the dispatcher, with the sweep that would hide a lost wake-up out of the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from redrive.lifecycle import JobState
from redrive.protocol.commands import PauseIt, ResumeIt
from redrived.api import pausing
from redrived.engine import dispatcher
from support.engine import TESTER, running

TASKS = """
[tasks.tiny]
command = "true"
"""


@pytest.mark.parametrize("name", ["task:tiny", "queue:default"])
async def test_what_is_resumed_goes_on_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(dispatcher, "SWEEP", 3600.0)
    async with running(tmp_path, TASKS) as bench:
        await pausing.pause(bench.engine, TESTER, PauseIt(name=name))
        [id] = await bench.enqueue("tiny")
        await pausing.resume(bench.engine, TESTER, ResumeIt(name=name))
        assert (await bench.ended(id)).state is JobState.DONE
