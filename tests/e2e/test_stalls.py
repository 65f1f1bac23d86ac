"""Workers, daemons and stores that stand still: who is accused of it, and who is not."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from redrive.client import AnswerLost
from redrive.lifecycle import JobState
from redrive.models import Event
from redrive.protocol.commands import PauseIt
from support.daemon import eventually
from support.faults import HANDLERS, TASKS
from support.processes import is_alive
from support.trial import Trial, trial

WATCHED = """
[tasks.beat_and_hang]
python = "handlers:beat_and_hang"
heartbeat = { from = "job", every = "50ms", stalled_after = "500ms" }
grace = "300ms"
retry = "soon"
[tasks.complete_late]
python = "handlers:complete_late"
heartbeat = { from = "job", every = "50ms", stalled_after = "500ms" }
grace = "20s"
retry = "soon"
[tasks.beat_for]
python = "handlers:beat_for"
heartbeat = { from = "job", every = "50ms", stalled_after = "1s" }
grace = "300ms"
retry = "soon"
[tasks.ticking]
command = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do echo $i; sleep 0.2; done"
heartbeat = { from = "output", every = "250ms", stalled_after = "1500ms" }
retry = "soon"
timeout = "60s"
[tasks.close_call]
python = "handlers:close_call"
heartbeat = { from = "job", every = "100ms", stalled_after = "400ms" }
grace = "50ms"
"""

STALLED_ONCE = [
    "step_started",
    "action_started",
    "action_stalled",
    "action_error",
    "step_retry",
    "action_started",
    "action_completed",
]


def test_f04_a_worker_stopped_for_too_long_is_replaced_and_changes_nothing(tmp_path: Path) -> None:
    with trial(tmp_path, TASKS + WATCHED, HANDLERS) as daemon:
        daemon.start()
        id = daemon.enqueue("beat_and_hang", path="pids")
        worker = daemon.noted_pid("pids")
        os.kill(worker, signal.SIGSTOP)
        daemon.until_told(id, "action_stalled")
        try:
            os.kill(worker, signal.SIGCONT)
        except ProcessLookupError:
            pass  # it is gone already
        job = daemon.until_ended(id)

        assert (job.state, job.attempts) == (JobState.DONE, 2)
        told = [kind for kind in daemon.told(id) if kind != "heartbeat_late"]
        assert told == STALLED_ONCE
        assert not is_alive(worker)


def test_f04_what_a_stopped_worker_completes_too_late_changes_nothing(tmp_path: Path) -> None:
    with trial(tmp_path, TASKS + WATCHED, HANDLERS) as daemon:
        daemon.start()
        id = daemon.enqueue("complete_late", path="pids")
        worker = daemon.noted_pid("pids")
        os.kill(worker, signal.SIGSTOP)
        daemon.until_told(id, "action_stalled")
        # It is woken to be ended, and has all its grace to complete.
        eventually(lambda: "late" in daemon.wrote("pids"), "the first attempt completes")
        job = daemon.until_ended(id)

        assert (job.state, job.attempts, job.result) == (JobState.DONE, 2, {"attempt": 2})
        told = [kind for kind in daemon.told(id) if kind not in ("heartbeat_late", "late_result")]
        assert told == STALLED_ONCE
        history = daemon.ask.show_job(id).history
        assert [each.outcome for each in history] == ["stalled", "done"]


# The whole minute is for whoever has one: REDRIVE_STOP_SECONDS=60.
STOPS = [1.6, 3.0, *map(float, os.environ.get("REDRIVE_STOP_SECONDS", "").split())]


@pytest.mark.parametrize("seconds", STOPS)
def test_f05_a_daemon_that_was_stopped_accuses_nobody(tmp_path: Path, seconds: float) -> None:
    with trial(tmp_path, TASKS + WATCHED, HANDLERS) as daemon:
        daemon.start()
        ids = [daemon.enqueue("beat_for", path="pids", seconds=seconds + 2) for _ in range(2)]
        ids.append(daemon.enqueue("ticking"))
        eventually(lambda: len(daemon.wrote("pids")) == 2, "two handlers")
        daemon.until_told(ids[2], "action_started")
        daemon.signal(signal.SIGSTOP)
        time.sleep(seconds)  # the length of the stop is the test
        daemon.signal(signal.SIGCONT)

        for id in ids:
            daemon.until_done_at_once(id)


def test_f16_a_store_that_another_program_holds_stalls_nobody_and_loses_nothing(
    tmp_path: Path,
) -> None:
    """As an operator does who opens the file by hand and forgets to commit."""
    seconds = float(os.environ.get("REDRIVE_LOCK_SECONDS", "6"))
    tasks = (
        TASKS
        + WATCHED
        + """
[schedules.often]
task = "say"
every = "1s"
overlap = "allow"
"""
    )
    with trial(tmp_path, tasks, HANDLERS) as daemon:
        daemon.start()
        ids = [daemon.enqueue("beat_for", path="pids", seconds=seconds + 2)]
        ids.append(daemon.enqueue("ticking"))
        for id in ids:
            daemon.until_told(id, "action_started")
        fired = len(fires(daemon))
        with held(tmp_path / "state" / "redrive.db"):
            end = time.monotonic() + seconds
            with pytest.raises(AnswerLost):
                daemon.ask.ask(PauseIt(name="task:hang"), timeout=1.0)
            eventually(lambda: daemon.ask.status().trouble == "busy", "it is told")
            while time.monotonic() < end:
                assert daemon.job(ids[0]).state is JobState.LEASED  # who only looks is answered
                time.sleep(0.2)

        for id in ids:
            daemon.until_done_at_once(id)
        assert daemon.until_ended(daemon.enqueue("say")).state is JobState.DONE
        eventually(lambda: len(fires(daemon)) > fired + 3, "the schedules go on")
        assert daemon.ask.status().trouble is None
        assert " s late" not in daemon.log.read_text()  # the loop never was


def fires(daemon: Trial) -> list[Event]:
    return [event for event in daemon.events() if event.type == "schedule_fired"]


@contextmanager
def held(store: Path) -> Generator[None]:
    with closing(sqlite3.connect(store, isolation_level=None)) as stranger:
        stranger.execute("BEGIN IMMEDIATE")
        yield
        stranger.execute("ROLLBACK")


def test_f11_an_end_and_a_stall_at_once_are_one_end(tmp_path: Path) -> None:
    with trial(tmp_path, TASKS + WATCHED, HANDLERS) as daemon:
        daemon.start()
        ids = daemon.enqueue_many("close_call", 40)
        daemon.until_all_ended()

        for id in ids:
            told = Counter(daemon.told(id))
            ends = told["action_completed"] + told["step_retry_exhausted"]
            assert (told["action_started"], ends, told["late_result"]) == (1, 1, 0), daemon.told(id)
        daemon.hang_up()
        assert daemon.stop() == 0
        daemon.check_store()
