"""An attempt that the kernel ended for a limit of its task fails for good, whoever ran it."""

from __future__ import annotations

from pathlib import Path

import pytest

from redrive.lifecycle import JobState, Reason
from support.engine import running

HANDLERS = """
import os, signal

def burn():
    while True:
        pass

def die():
    os.kill(os.getpid(), signal.SIGXCPU)
"""
CONFIG = """
[pools.default]
path = ["."]
[tasks.burn]
python = "handlers:burn"
retry = 2
limits = { cpu = "1s" }
[tasks.die]
python = "handlers:die"
[tasks.fill]
command = "head -c 2000000 /dev/zero > filled; exit $?"
retry = 2
limits = { file_size = "1M" }
[tasks.exit]
command = "exit $REDRIVE_ARG_CODE"
[tasks.exit_limited]
command = "exit $REDRIVE_ARG_CODE"
limits = { file_size = "1M" }
"""


async def test_a_handler_that_uses_up_its_processor_time_is_not_taken_for_lost(
    tmp_path: Path,
) -> None:
    (tmp_path / "handlers.py").write_text(HANDLERS)
    async with running(tmp_path, CONFIG) as bench:
        [id] = await bench.enqueue("burn")
        job = await bench.ended(id)
        assert (job.state, job.reason, job.attempts) == (JobState.DEAD, Reason.PERMANENT, 1)
        assert job.error is not None
        assert (job.error.error_type, job.error.rule) == ("limit_exceeded", "signal SIGXCPU")
        assert job.error.message == ("the worker process was killed by SIGXCPU: see `limits.cpu`")
        assert job.budgets is not None
        assert job.budgets.lost == 0
        assert "action_lost" not in await bench.told(id)


async def test_the_same_signal_without_that_limit_is_a_loss(tmp_path: Path) -> None:
    (tmp_path / "handlers.py").write_text(HANDLERS)
    async with running(tmp_path, CONFIG) as bench:
        [id] = await bench.enqueue("die")
        assert (await bench.failed(id)).error_type == "lost"


async def test_what_a_shell_says_of_a_limit_is_judged_like_its_signal(tmp_path: Path) -> None:
    async with running(tmp_path, CONFIG) as bench:
        [id] = await bench.enqueue("fill")
        assert (await bench.failed(id)).error_type == "limit_exceeded"
        assert (await bench.job(id)).attempts == 1


@pytest.mark.parametrize(
    ("task", "code", "error_type"),
    [
        ("exit_limited", 153, "limit_exceeded"),
        ("exit_limited", 152, "unknown"),  # of another limit, which it does not have
        ("exit_limited", 143, "unknown"),
        ("exit_limited", 255, "unknown"),
        ("exit", 153, "unknown"),
    ],
)
async def test_a_large_exit_code_is_a_signal_only_with_the_limit_behind_it(
    tmp_path: Path, task: str, code: int, error_type: str
) -> None:
    async with running(tmp_path, CONFIG) as bench:
        [id] = await bench.enqueue(task, code=code)
        error = await bench.failed(id)
        assert error.error_type == error_type
        if error_type != "unknown":
            assert error.message == "ended by SIGXFSZ: see `limits.file_size`"
