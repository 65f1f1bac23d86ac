"""Output without end: it costs its own attempt, and nobody's disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from redrive.lifecycle import JobState
from support.daemon import eventually
from support.trial import Trial, trial

MB = 1 << 20
ENOUGH = 64  # MB, printed in a grace that never ends

HANDLERS = """
import os, signal, time

def pour():
    while True:
        print("x" * (1 << 20), flush=True)
        with open("poured", "a") as file:
            file.write("1\\n")
        time.sleep(0.02)

def flood():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    pour()

def flood_when_asked_to_go():
    print("here", flush=True)
    try:
        time.sleep(600)
    except BaseException:
        pour()
"""

POUR = "while :; do head -c 1048576 /dev/zero; echo 1 >> poured; sleep 0.02; done"

TASKS = f"""
[pools.default]
path = ["."]
[tasks.flood]
python = "handlers:flood"
grace = "10m"
limits.output = "1M"
[tasks.flood_when_asked_to_go]
python = "handlers:flood_when_asked_to_go"
grace = "10m"
limits.output = "1M"
[tasks.sh_flood]
command = "trap '' TERM; {POUR}"
grace = "10m"
limits.output = "1M"
[tasks.sh_flood_when_asked_to_go]
command = "trap '{POUR}' TERM; echo here; while :; do sleep 0.05; done"
grace = "10m"
limits.output = "1M"
"""


def on_disk(daemon: Trial) -> int:
    """Bytes of the largest file that attempts have printed to."""
    outputs = daemon.folder / "state" / "outputs"
    return max((path.stat().st_size for path in outputs.rglob("*") if path.is_file()), default=0)


@pytest.mark.parametrize("task", ["flood", "sh_flood"])
def test_f48_a_flood_that_is_deaf_is_ended_at_once(tmp_path: Path, task: str) -> None:
    with trial(tmp_path, TASKS, HANDLERS) as daemon:
        daemon.start()
        job = daemon.until_ended(daemon.enqueue(task))

        assert job.error is not None
        assert (job.state, job.error.error_type) == (JobState.DEAD, "log_limit")
        assert on_disk(daemon) <= MB


@pytest.mark.parametrize("task", ["flood_when_asked_to_go", "sh_flood_when_asked_to_go"])
def test_f48_what_is_printed_in_the_grace_is_cut_while_it_grows(tmp_path: Path, task: str) -> None:
    with trial(tmp_path, TASKS, HANDLERS) as daemon:
        daemon.start()
        id = daemon.enqueue(task)
        daemon.until_told(id, "action_started")
        eventually(lambda: daemon.ask.log(id).data == b"here\n", "it runs")
        daemon.run("cancel", str(id), check=True)

        eventually(lambda: len(daemon.wrote("poured")) >= ENOUGH, "the flood")
        eventually(lambda: on_disk(daemon) <= MB, "it is cut back", every=0.001)
        assert on_disk(daemon) < ENOUGH / 2 * MB
        daemon.run("kill", str(id), check=True)

        assert daemon.until_ended(id).state is JobState.CANCELLED
        assert on_disk(daemon) <= MB
