"""`redrive demo` shows everything, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.daemon import PATIENCE, eventually
from support.processes import everybody_with

PROMISED = 240.0  # seconds
PROMISES = (
    "action_completed",
    "action_error",
    "step_retry",
    "step_retry_exhausted",
    "action_stalled",
    "action_lost",
    "breaker_opened",
    "breaker_closed",
    "gate_opened",
    "schedule_fired",
    "execution_completed",
    "execution_failed",
)
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


def test_everything_there_is_to_see_happens_within_minutes(demo: subprocess.Popen[str]) -> None:
    assert demo.stdout is not None
    out_of_time = threading.Timer(PROMISED, demo.terminate)
    out_of_time.start()
    wanted = set(PROMISES)
    for line in demo.stdout:
        wanted.discard(json.loads(line)["type"])
        if not wanted:
            break
    out_of_time.cancel()
    assert not wanted


def test_a_signal_reaches_the_thread_that_ends_the_demo(demo: subprocess.Popen[str]) -> None:
    """On a busy machine any other one would take it now and then, and never tell."""
    assert demo.stdout is not None
    demo.stdout.readline()
    listening = [
        thread.name
        for thread in Path(f"/proc/{demo.pid}/task").iterdir()
        if not _blocks(thread / "status", signal.SIGTERM)
    ]
    assert listening == [str(demo.pid)]


def _blocks(status: Path, number: int) -> bool:
    try:
        text = status.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True  # it has ended
    blocked = int(text.partition("SigBlk:")[2].split()[0], 16)
    return bool(blocked >> (number - 1) & 1)


def test_the_demo_ends_and_takes_everything_with_it(
    demo: subprocess.Popen[str], tmp_path: Path
) -> None:
    assert demo.stdout is not None
    demo.stdout.readline()
    (folder,) = tmp_path.glob("redrive-demo-*")
    demo.send_signal(signal.SIGTERM)
    assert demo.wait(PATIENCE) == 128 + signal.SIGTERM
    assert not folder.exists()
    eventually(lambda: not everybody_with(f"TMPDIR={tmp_path}"), "nobody is left")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_who_cannot_wait_for_its_end_leaves_nothing_behind_either(
    demo: subprocess.Popen[str], tmp_path: Path, number: signal.Signals
) -> None:
    assert demo.stdout is not None
    demo.stdout.readline()

    def insist() -> bool:
        demo.send_signal(number)
        return demo.poll() is not None

    eventually(insist, "the demo has ended")
    assert demo.returncode == 128 + number
    assert not [*tmp_path.iterdir()]
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
