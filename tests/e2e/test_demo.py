"""`redrive demo` shows everything, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.daemon import PATIENCE, eventually
from support.processes import everybody_with

TASKS = {"store", "read", "request", "charge", "weather", "report.fetch@1"}


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A short one: sockets lie deep in it, and their paths have at most 107 characters."""
    with tempfile.TemporaryDirectory(prefix="redrive-") as folder:
        yield Path(folder)


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "redrive", "demo", "--json"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    yield process
    process.terminate()
    process.communicate(timeout=PATIENCE)


def test_the_demo_fails_retries_and_succeeds_until_it_is_ended(
    demo: subprocess.Popen[str], tmp_path: Path
) -> None:
    assert demo.stdout is not None
    wanted = {"action_completed", "action_error", "step_retry", "execution_completed"}
    for line in demo.stdout:
        wanted.discard(json.loads(line)["type"])
        if not wanted:
            break
    (folder,) = tmp_path.glob("redrive-demo-*")
    demo.send_signal(signal.SIGTERM)
    assert demo.wait(PATIENCE) == 128 + signal.SIGTERM
    assert not folder.exists()
    eventually(lambda: not everybody_with(f"TMPDIR={tmp_path}"), "nobody is left")


def test_a_reader_who_goes_away_ends_the_demo(demo: subprocess.Popen[str], tmp_path: Path) -> None:
    assert demo.stdout is not None
    demo.stdout.readline()
    demo.stdout.close()
    demo.wait(PATIENCE)
    assert not [*tmp_path.iterdir()]


def test_the_demo_has_jobs_of_all_five_systems(demo: subprocess.Popen[str], tmp_path: Path) -> None:
    assert demo.stdout is not None
    demo.stdout.readline()
    (config,) = tmp_path.glob("redrive-demo-*/config.toml")

    def tasks() -> set[str]:
        words = [sys.executable, "-m", "redrive", "--config", str(config), "jobs", "--json"]
        told = subprocess.run(words, capture_output=True, text=True, check=True)
        return {json.loads(line)["task"] for line in told.stdout.splitlines()}

    eventually(lambda: tasks() >= TASKS, "all of them are seen", every=0.5)
