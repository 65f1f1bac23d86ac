"""What this node believes to be paused, whatever order the store's answers come in."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from sqlalchemy import Connection

from redrive.protocol.commands import PauseIt, ResumeIt
from redrive.protocol.rows import Pause
from redrived.api import pausing
from redrived.store import pauses
from support.engine import TESTER, WITHIN
from support.engines import an_engine


async def test_an_answer_from_before_a_resume_pauses_nothing_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, has_read, go_on = pauses.read, threading.Event(), threading.Event()

    def slowly(connection: Connection) -> list[Pause]:
        found = read(connection)
        if found:
            has_read.set()
            go_on.wait(WITHIN)
        return found

    monkeypatch.setattr(pauses, "read", slowly)
    async with an_engine(tmp_path) as engine:
        name = "queue:default"
        pause = asyncio.create_task(pausing.pause(engine, TESTER, PauseIt(name=name)))
        assert await asyncio.to_thread(has_read.wait, WITHIN)
        await pausing.resume(engine, TESTER, ResumeIt(name=name))
        go_on.set()
        await pause

        assert engine.pauses.all() == []
