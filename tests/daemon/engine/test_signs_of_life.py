"""Whose silence counts: commands that speak sd_notify, handlers that never beat."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from redrive.lifecycle import JobState
from support.engine import running

SPEAKING = """
import os, socket, sys, time
mouth = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
mouth.connect(os.environ["NOTIFY_SOCKET"])
for _ in range(int(sys.argv[1])):
    mouth.send(sys.argv[2].encode())
    time.sleep(0.05)
time.sleep(float(sys.argv[3]))
"""
TASKS = f"""
[tasks.speak]
command = ["{sys.executable}", "-IS", "speaking.py", "{{{{ args.times }}}}", "{{{{ args.word }}}}",
    "{{{{ args.silence }}}}"]
heartbeat = {{ from = "notify", every = "100ms", stalled_after = "1500ms" }}
grace = "100ms"

[pools.default]
path = ["."]
preload = ["quiet"]
[tasks.work]
python = "quiet:work"
heartbeat = {{ from = "job", every = "100ms", stalled_after = "400ms" }}
grace = "100ms"
[tasks.brief]
python = "quiet:brief"
heartbeat = {{ from = "job", every = "1ms", stalled_after = "1s" }}
"""
QUIET = """
import time
import redrive

def work(beats):
    for _ in range(beats):
        redrive.current_job().heartbeat()
    time.sleep(1.5)

def brief():
    time.sleep(0.01)
    redrive.current_job().heartbeat()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "speaking.py").write_text(SPEAKING)
    (tmp_path / "quiet.py").write_text(QUIET)
    return tmp_path


async def test_a_command_that_goes_on_saying_it_lives_goes_on(folder: Path) -> None:
    async with running(folder, TASKS) as bench:
        [id] = await bench.enqueue("speak", times=50, word="WATCHDOG=1", silence=0)
        assert (await bench.ended(id)).state is JobState.DONE
        assert "action_stalled" not in await bench.told(id)


async def test_a_command_that_falls_silent_has_stalled(folder: Path) -> None:
    async with running(folder, TASKS) as bench:
        [id] = await bench.enqueue("speak", times=5, word="WATCHDOG=1", silence=60)
        job = await bench.ended(id)
        assert job.error is not None
        assert (job.state, job.error.error_type) == (JobState.DEAD, "stalled")
        assert "action_stalled" in await bench.told(id)


async def test_numbers_that_a_command_tells_are_metrics_of_its_job(folder: Path) -> None:
    async with running(folder, TASKS) as bench:
        [id] = await bench.enqueue("speak", times=1, word="X_REDRIVE_METRIC_rows=7", silence=0)
        assert (await bench.ended(id)).metrics == {"rows": 7}


async def test_a_handler_that_never_beats_is_expected_to_by_nobody(folder: Path) -> None:
    async with running(folder, TASKS) as bench:
        [never] = await bench.enqueue("work", beats=0)
        [once] = await bench.enqueue("work", beats=1)
        assert (await bench.ended(never)).state is JobState.DONE
        assert (await bench.ended(once)).state is JobState.DEAD
        assert "action_stalled" not in await bench.told(never)
        assert "action_stalled" in await bench.told(once)


async def test_the_last_beat_of_a_brief_job_is_kept_with_its_end(folder: Path) -> None:
    async with running(folder, TASKS) as bench:
        [id] = await bench.enqueue("brief")
        job = await bench.ended(id)
        assert job.heartbeat_at is not None
        assert job.started_at is not None
        assert job.heartbeat_at > job.started_at
