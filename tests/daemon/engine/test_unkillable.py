"""What SIGKILL does not end is told everywhere, for as long as it is there; then it is settled."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from redrive.config import Config
from redrive.config.sections import Task
from redrive.lifecycle import JobState
from redrive.protocol.commands import Act
from redrive.protocol.queries import Doctor, Status, Why
from redrived.api import acting
from redrived.api.doctor import doctor
from redrived.api.status import status
from redrived.api.why import why
from redrived.engine.attempt import Attempt
from redrived.engine.definitions import TaskDefinition
from redrived.engine.unkillable import SAID_EVERY, Unkillable
from redrived.store.picking import InHand
from support.clock import FakeClock
from support.daemon import soon
from support.engine import TESTER, Bench, running
from support.engines import an_engine
from support.ice import Ice

TASKS = """
[pools.default]
path = ["."]

[tasks.command]
command = ["sleep", "60"]
[tasks.handler]
python = "handlers:hang"
[tasks.deaf]
command = "trap '' TERM; echo deaf; sleep 60"
grace = "1h"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "handlers.py").write_text("import time\n\ndef hang():\n    time.sleep(60)\n")
    return tmp_path


async def begun(bench: Bench, id: int) -> Attempt:
    await soon(lambda: bench.engine.attempts.get(id), "it runs")
    found = bench.engine.attempts.get(id)
    assert found is not None
    return found


async def attention(bench: Bench) -> list[tuple[str, str, str]]:
    found = (await status(bench.engine, TESTER, Status())).attention
    return [(each.kind, each.text, each.where) for each in found]


@pytest.mark.parametrize("task", ["command", "handler"])
async def test_an_attempt_that_cannot_be_killed_is_told_until_it_is_gone(
    folder: Path, ice: Ice, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(folder, TASKS) as bench:
        monkeypatch.setattr(bench.engine.trees, "_patience", 0.2)
        [id] = await bench.enqueue(task)
        attempt = await begun(bench, id)
        [pid] = attempt.executor.pids()
        ice.freeze(pid)

        await acting.act(bench.engine, TESTER, Act(verb="kill", ids=[str(id)]))
        event = await bench.event("action_unkillable", id)

        assert event.data["unkillable"] == [pid]
        told = await why(bench.engine, TESTER, Why(id=str(id)))
        assert (told.code, told.saw["by"]) == ("unkillable", "tester")
        assert told.text.startswith(f"SIGKILL does not end process {pid}: it is being killed by")
        assert "thaw it" in told.hint
        text = f"SIGKILL does not end job {id}: `redrive why {id}`"
        assert await attention(bench) == [("unkillable", text, f"id:{id}")]
        checks = (await doctor(bench.engine, TESTER, Doctor())).checks
        assert [check.name for check in checks if not check.ok] == [f"job {id}"]

        ice.thaw()
        job = await bench.ended(id)

        assert job.state is JobState.CANCELLED
        killed = await bench.event("job_killed", id)
        assert killed.data["by"] == "tester"
        assert "unkillable" not in killed.data
        assert await attention(bench) == []
        assert (await why(bench.engine, TESTER, Why(id=str(id)))).code == "cancelled"


async def test_a_job_whose_grace_is_running_says_who_asked_and_what_comes_next(
    folder: Path,
) -> None:
    async with running(folder, TASKS) as bench:
        [id] = await bench.enqueue("deaf")
        attempt = await begun(bench, id)
        await soon(attempt.executor.sample, "it is deaf")
        await acting.act(bench.engine, TESTER, Act(verb="cancel", ids=[str(id)]))

        told = await why(bench.engine, TESTER, Why(id=str(id)))

        assert told.code == "ending"
        assert told.text.startswith("it is being cancelled by tester since 2")
        assert "; SIGKILL follows in " in told.text
        assert told.text.endswith(", then it is cancelled")
        await acting.act(bench.engine, TESTER, Act(verb="kill", ids=[str(id)]))
        await bench.ended(id)


class Stuck:
    """Runs what is in disk sleep, for all the engine knows."""

    def __init__(self) -> None:
        self.left: tuple[int, ...] = ()

    def end(self, attempt: Attempt, grace: float) -> None: ...

    def pids(self) -> list[int]:
        return []

    def live_output(self, attempt: Attempt) -> str | None:
        return None

    def sample(self) -> int:
        return 0

    def keeps_output(self) -> bool:
        return False

    def cut_output(self, attempt: Attempt, limit: int) -> None: ...

    def unkillable(self) -> tuple[int, ...]:
        return self.left


async def test_the_log_says_so_each_minute_and_when_it_is_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    clock = FakeClock()
    async with an_engine(tmp_path, clock=clock) as engine:
        job = InHand._make([12, *[None] * 19, "default", "sleep"])
        executor = Stuck()
        definition = TaskDefinition("sleep", Task(command=["sleep", "60"]), Config())
        engine.attempts.add(Attempt(job, definition, executor, 0, now=0.0))
        look = Unkillable(engine.attempts, engine.ender, engine.timers, clock)

        said = []
        for left, passed in [((), 0), ((7,), 0), ((7,), SAID_EVERY - 1), ((7,), 1), ((), 1)]:
            clock.move(passed)
            executor.left = left
            look.look_once()
            said.append(len(caplog.messages))

    assert said == [0, 1, 1, 2, 3]
    assert caplog.messages[1:] == [
        "job 12 cannot be ended: SIGKILL does not end process 7",
        "job 12: what could not be killed is gone",
    ]
