"""Who swallows the exception that ends them, and says that all is done, has ended all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from redrive.lifecycle import JobState
from redrive.protocol.commands import Act
from redrived.api import acting
from support.daemon import soon
from support.engine import TESTER, Bench, running

TASKS = """
[pools.default]
path = ["."]
processes = 1
[retry.once_more]
delays = ["10ms"]
jitter = 0
[tasks.swallow]
python = "handlers:swallow"
retry = "once_more"
[tasks.swallow_late]
python = "handlers:swallow"
retry = "once_more"
timeout = "1s"
[tasks.swallow_silently]
python = "handlers:swallow"
retry = "once_more"
heartbeat = { from = "job", every = "250ms", stalled_after = "1s" }
"""

HANDLERS = """
import time
from pathlib import Path
import redrive

def swallow():
    redrive.current_job().heartbeat()
    try:
        Path(__file__).with_name("is_listening").touch()
        time.sleep(60)
    except redrive.Cancelled as ended:
        print(ended, flush=True)
        return "all is well"
"""


WORDS = {
    "timeout": "the attempt runs for longer than its timeout",
    "stalled": "the attempt has given no sign of life for too long",
}


def printed(bench: Bench, id: int) -> list[str]:
    """What the handler was told, each time it was ended."""
    files = sorted((bench.engine.state_dir / "outputs").rglob(f"{id}.*.out"))
    return [line for file in files for line in file.read_text().splitlines()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "handlers.py").write_text(HANDLERS)
    return tmp_path


@pytest.mark.parametrize(
    ("task", "noticed"), [("swallow_late", "timeout"), ("swallow_silently", "stalled")]
)
async def test_what_took_too_long_has_failed(folder: Path, task: str, noticed: str) -> None:
    async with running(folder, TASKS) as bench:
        [id] = await bench.enqueue(task)
        job = await bench.ended(id)
        assert (job.state, job.attempts, job.result) == (JobState.DEAD, 2, None)
        assert job.error is not None
        assert job.error.error_type == noticed
        once = ["action_started", f"action_{noticed}", "action_error"]
        told = [type for type in await bench.told(id) if type != "heartbeat_late"]
        assert told == ["step_started", *once, "step_retry", *once, "step_retry_exhausted"]
        assert printed(bench, id) == [WORDS[noticed]] * 2
        times = [event.at for event in bench.heard if event.job == id]
        assert times == sorted(times)


async def test_a_cancelled_job_is_cancelled(folder: Path) -> None:
    async with running(folder, TASKS) as bench:
        [id] = await bench.enqueue("swallow")
        await soon((folder / "is_listening").exists, "the handler would swallow it")
        await acting.act(bench.engine, TESTER, Act(verb="cancel", ids=[str(id)]))
        assert (await bench.ended(id)).state is JobState.CANCELLED
        assert (await bench.event("job_cancelled", id)).data["by"] == "tester"
        assert printed(bench, id) == ["the job was cancelled"]


async def test_a_restarted_job_runs_again(folder: Path) -> None:
    async with running(folder, TASKS) as bench:
        [id] = await bench.enqueue("swallow")
        await soon((folder / "is_listening").exists, "the handler would swallow it")
        await acting.act(bench.engine, TESTER, Act(verb="restart", ids=[str(id)]))
        await bench.event("action_started", id, n=2)
        assert (await bench.event("job_restarted", id)).data["by"] == "tester"
        assert printed(bench, id) == ["the job is being restarted"]
        await acting.act(bench.engine, TESTER, Act(verb="kill", ids=[str(id)]))
        await bench.ended(id)
