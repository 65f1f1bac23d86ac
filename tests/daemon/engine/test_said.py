"""What workers and commands say of their attempts is stored at a size that lists can carry."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from redrive.lifecycle import JobState
from redrive.models import Job, Progress
from redrived.engine import said
from redrived.processes.notify_socket import Notice
from support.engine import running

# Past what `job.progress` and `job.metric` keep: an older worker, say, or a careless one.
HANDLERS = """
import redrive

def shout(fails):
    job = redrive.current_job()
    job.progress_made = [1, 2, "t" * 1_000_000]
    job.metrics = {"n" * 1_000_000: 1, "deep": [1], "where": "w" * 1_000_000}
    job.metrics.update({f"m{n}": n for n in range(20_000)})
    job.heartbeat()
    if fails:
        raise ValueError("no")
"""
COMMAND = """
import os, socket

with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as speaker:
    speaker.connect(os.environ["NOTIFY_SOCKET"])
    speaker.send(b"X_REDRIVE_PROGRESS=1/2\\nSTATUS=" + b"t" * 5000)
    speaker.send(b"X_REDRIVE_METRIC_" + b"n" * 101 + b"=1\\nX_REDRIVE_METRIC_rows=3")
    speaker.send(b"\\n".join(b"X_REDRIVE_METRIC_%d=1" % n for n in range(200)))
"""
WORDS = """
import os, socket

with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as speaker:
    speaker.connect(os.environ["NOTIFY_SOCKET"])
    speaker.send(b"X_REDRIVE_PROGRESS=3/10")
    speaker.send(b"STATUS=hi")
    speaker.send(b"X_REDRIVE_METRIC_rows=1")
    speaker.send(b"X_REDRIVE_METRIC_files=2")
    speaker.send(b"X_REDRIVE_METRIC_rows=3")
    speaker.send(b"X_REDRIVE_PROGRESS=4/10")
    speaker.send(b"WATCHDOG=1")
"""
CONFIG = f"""
[pools.default]
path = ["."]
[tasks.shout]
python = "handlers:shout"
[tasks.say]
command = ["{sys.executable}", "say.py"]
heartbeat = {{ from = "notify", stalled_after = "1m" }}
"""
TEXT = "t" * 199 + "…"


def names(job: Job) -> list[str]:
    return list(job.metrics or {})


@pytest.mark.parametrize("fails", [False, True])
async def test_what_a_worker_says_is_cut_where_it_comes_in(tmp_path: Path, fails: bool) -> None:
    (tmp_path / "handlers.py").write_text(HANDLERS)
    async with running(tmp_path, CONFIG) as bench:
        [id] = await bench.enqueue("shout", fails=fails)
        job = await bench.ended(id)
        end = await bench.event("action_error" if fails else "action_completed", id)

        assert job.state is (JobState.DEAD if fails else JobState.DONE)
        assert job.progress == Progress(done=1, total=2, text=TEXT)
        assert names(job) == ["where", *(f"m{n}" for n in range(99))]
        assert job.metrics is not None
        assert job.metrics["where"] == "w" * 199 + "…"
        assert end.data["metrics"] == job.metrics


async def test_what_a_command_says_is_cut_where_it_comes_in(tmp_path: Path) -> None:
    (tmp_path / "say.py").write_text(COMMAND)
    async with running(tmp_path, CONFIG) as bench:
        [id] = await bench.enqueue("say")
        job = await bench.ended(id)

        assert job.state is JobState.DONE, job.error
        assert job.progress == Progress(done=1, total=2, text=TEXT)
        assert len(names(job)) == 100
        assert max(map(len, names(job))) < 10


async def test_each_variable_of_the_protocol_stands_for_itself(tmp_path: Path) -> None:
    (tmp_path / "say.py").write_text(WORDS)
    async with running(tmp_path, CONFIG) as bench:
        [id] = await bench.enqueue("say")
        job = await bench.ended(id)

        assert job.state is JobState.DONE, job.error
        assert job.progress == Progress(done=4, total=10, text="hi")
        assert job.metrics == {"rows": 3, "files": 2}


def test_an_empty_status_takes_the_text_back() -> None:
    before = said.progress_after(Notice(status="hi", progress=Progress(done=1)), None)
    after = said.progress_after(Notice(status=""), before)

    assert after == '{"done":1.0,"total":null,"text":null}'
    assert said.progress_after(Notice(), after) is None
    assert said.metrics_after(Notice(), '{"a":1}') is None


@pytest.mark.parametrize("value", [[1], {"a": 1}, 10**30, -(10**30)])
def test_a_metric_is_a_text_or_a_usual_number(value: Any) -> None:
    assert said.metrics({"bad": value}) is None
    assert said.metrics({"bad": value, "good": 1.5, "yes": True}) == {"good": 1.5, "yes": True}
