"""Workers that hang where no handler of ours runs: they cost no job its attempt, nor its pool."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from redrive.lifecycle import JobState
from redrived.processes import pool_worker
from support.engine import Bench, running

TASKS = """
[pools.default]
path = ["."]
processes = 1

[retry.soon]
delays = ["20ms", "20ms"]
jitter = 0

[tasks.who]
python = "handlers:who"
[tasks.brief]
python = "handlers:who"
timeout = "400ms"
grace = "50ms"
[tasks.slow_code]
python = "slow_code:run"
retry = "soon"
grace = "100ms"
heartbeat = { from = "job", every = "50ms", stalled_after = "400ms" }
"""

HANDLERS = "import os\ndef who(): return os.getpid()\n"

HANGS_ONCE = """
import os, time
if not os.path.exists("imported"):
    open("imported", "w").close()
    time.sleep(600)
def run():
    time.sleep(0.6)
    return "ran"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "handlers.py").write_text(HANDLERS)
    (tmp_path / "slow_code.py").write_text(HANGS_ONCE)
    return tmp_path


async def an_idle_worker(bench: Bench) -> pool_worker.Worker:
    [id] = await bench.enqueue("who")
    await bench.ended(id)
    [worker] = bench.engine.python.pools["default"].workers
    return worker


async def test_jobs_of_a_worker_that_was_stopped_go_to_its_successor_at_no_cost(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_worker, "BEGIN_WITHIN", 0.5)
    async with running(folder, TASKS) as bench:
        stopped = await an_idle_worker(bench)
        os.kill(stopped.process.pid, signal.SIGSTOP)
        ids = await bench.enqueue("who", 3)

        for id in ids:
            job = await bench.ended(id)
            assert (job.state, job.attempts) == (JobState.DONE, 1)
            assert job.result != stopped.process.pid
            assert "action_error" not in await bench.told(id)
        interrupted = await bench.event("job_interrupted", ids[0])
        assert interrupted.data["by"] == "its worker gave it back before it began"


async def test_a_timeout_that_strikes_before_the_begin_costs_no_attempt(folder: Path) -> None:
    async with running(folder, TASKS) as bench:
        stopped = await an_idle_worker(bench)
        os.kill(stopped.process.pid, signal.SIGSTOP)
        [id] = await bench.enqueue("brief")

        job = await bench.ended(id)
        assert (job.state, job.attempts) == (JobState.DONE, 1)
        assert (await bench.told(id))[2:] == [
            "action_timeout",
            "job_interrupted",
            "action_started",
            "action_completed",
        ]


async def test_an_import_that_hangs_is_a_stall_and_a_long_handler_after_it_is_none(
    folder: Path,
) -> None:
    async with running(folder, TASKS) as bench:
        [id] = await bench.enqueue("slow_code")
        job = await bench.ended(id)

        assert (job.state, job.attempts, job.result) == (JobState.DONE, 2, "ran")
        told = [kind for kind in await bench.told(id) if kind != "heartbeat_late"]
        assert told == [
            "step_started",
            "action_started",
            "action_stalled",
            "action_error",
            "step_retry",
            "action_started",
            "action_completed",
        ]
        error = (await bench.event("action_error", id)).data["error"]
        assert error["error_type"] == "stalled"
        assert error["message"] == (
            "no sign of life for 0.4 s, while the code of its task was imported"
        )
