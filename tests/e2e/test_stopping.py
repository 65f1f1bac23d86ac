"""Attempts and daemons that are to stop: whoever runs away, and what is given back."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from redrive.lifecycle import JobState
from redrived.processes import proc
from support.daemon import eventually
from support.faults import HANDLERS, LONG_GRACE, PATIENT, TASKS
from support.processes import is_alive
from support.trial import trial

# ---- processes that do not want to go ------------------------------------------------------


@pytest.mark.parametrize("verb", ["cancel", "kill"])
def test_f06_a_handler_that_runs_away_is_caught(tmp_path: Path, verb: str) -> None:
    with trial(tmp_path, TASKS, HANDLERS) as daemon:
        daemon.start()
        id = daemon.enqueue("runaway", path=str(tmp_path / "runaways"))
        escaped = daemon.noted_pid("runaways")
        daemon.ask.act(verb, str(id))
        job = daemon.until_ended(id)

        assert job.state is JobState.CANCELLED
        assert not is_alive(escaped)
        assert escaped in daemon.events(id)[-1].data["escaped"]


HIDING = """
[tasks.hide]
command = "env -i setsid sh -c '(sleep 600 & echo $! >> hidden)'; sleep 600"
timeout = "{timeout}"
retry = 1
[tasks.hide_and_go]
command = "env -i setsid sh -c '(sleep 600 & echo $! >> hidden)'"
[tasks.hide_all]
command = "env -i setsid sh -c '(sleep 600 >/dev/null 2>&1 & echo $! >> hidden)'; sleep 600"
"""


def test_f06_who_hides_his_environment_is_caught_by_what_he_prints_to(tmp_path: Path) -> None:
    with trial(tmp_path, TASKS + HIDING.format(timeout="60s"), HANDLERS) as daemon:
        daemon.start()
        daemon.until_told(daemon.enqueue("sleep"), "action_started")  # he might be of it, too
        for task, file in (("runaway", "runaways"), ("hide", "hidden")):
            args = {"path": str(tmp_path / file), "env": {}} if task == "runaway" else {}
            id = daemon.enqueue(task, **args)
            escaped = daemon.noted_pid(file)
            daemon.ask.act("kill", str(id))
            assert daemon.until_ended(id).state is JobState.CANCELLED
            assert not is_alive(escaped)
            assert escaped in daemon.events(id)[-1].data["escaped"]


def test_f06_who_hides_does_not_outlive_a_daemon_that_was_killed(tmp_path: Path) -> None:
    with trial(tmp_path, TASKS + HIDING.format(timeout="60s"), HANDLERS) as daemon:
        daemon.start()
        daemon.enqueue("hide")
        escaped = daemon.noted_pid("hidden")
        daemon.pull_the_plug()
        assert is_alive(escaped)
        daemon.start()
        assert not is_alive(escaped)


def test_f06_who_hides_does_not_outlive_his_attempt(tmp_path: Path) -> None:
    with trial(tmp_path, TASKS + HIDING.format(timeout="1s"), HANDLERS) as daemon:
        daemon.start()
        daemon.until_told(daemon.enqueue("sleep"), "action_started")
        for task, state in (("hide", JobState.DEAD), ("hide_and_go", JobState.DONE)):
            id = daemon.enqueue(task)
            assert daemon.until_ended(id).state is state
            assert not is_alive(daemon.noted_pid("hidden"))


def test_f06_who_hides_even_what_he_prints_goes_with_the_daemon(tmp_path: Path) -> None:
    with trial(tmp_path, TASKS + HIDING.format(timeout="60s"), HANDLERS, PATIENT) as daemon:
        daemon.start()
        daemon.until_told(daemon.enqueue("sleep"), "action_started")
        id = daemon.enqueue("hide_all")
        escaped = daemon.noted_pid("hidden")
        daemon.ask.act("kill", str(id))
        assert daemon.until_ended(id).state is JobState.CANCELLED
        daemon.hang_up()
        assert daemon.stop() == 0
        assert not is_alive(escaped)


def test_f08_a_grandchild_that_holds_the_output_open_delays_nothing(tmp_path: Path) -> None:
    with trial(tmp_path, TASKS, HANDLERS) as daemon:
        daemon.start()
        id = daemon.enqueue("holder")
        job = daemon.until_ended(id)

        assert job.state is JobState.DONE
        assert daemon.ask.log(id).data == b"done\n"
        [left_behind] = daemon.events(id)[-1].data["left_behind"]
        assert not is_alive(left_behind)

        workers = {worker for worker in proc.children(daemon.pid) if _is_python(worker)}
        eventually(lambda: daemon.processes() <= workers, "the grandchild is ended too")


def _is_python(pid: int) -> bool:
    return b"redrived/worker/main.py" in Path(f"/proc/{pid}/cmdline").read_bytes()


def test_f43_a_stop_wins_over_a_restart_in_flight(tmp_path: Path) -> None:
    with trial(tmp_path, TASKS, HANDLERS) as daemon:
        daemon.start()
        id = daemon.enqueue("stubborn")
        pid = daemon.noted_pid("stubborn")
        daemon.ask.act("restart", str(id))
        daemon.ask.act("cancel", str(id))
        job = daemon.until_ended(id)

        assert job.state is JobState.CANCELLED
        assert daemon.told(id) == ["step_started", "action_started", "job_cancelled"]
        assert not is_alive(pid)
        assert len(daemon.wrote("stubborn")) == 1


# ---- stopping ------------------------------------------------------------------------------


def test_a_drain_refunds_what_it_interrupts_and_what_lies_in_hand(tmp_path: Path) -> None:
    tasks = TASKS.replace("processes = 4", "processes = 1")
    with trial(tmp_path, tasks, HANDLERS, PATIENT) as daemon:
        daemon.start()
        daemon.enqueue_many("write", 200, path="warm")  # so that its pace is known
        daemon.until_all_ended()
        hang = daemon.enqueue("hang", path="hanging")
        command = daemon.enqueue("sleep")
        daemon.noted_pid("hanging")
        daemon.until_told(command, "action_started")
        behind = daemon.enqueue_many("write", 50, path="behind")
        daemon.hang_up()
        assert daemon.stop() == 0
        daemon.check_store()

        daemon.start()
        for id in (hang, command):
            assert daemon.told(id)[1:3] == ["action_started", "job_interrupted"]
            job = daemon.job(id)
            assert job.attempts in (0, 1)  # 1: it runs again
            assert job.budgets is not None
            assert (job.budgets.interruptions, job.budgets.lost) == (1, 0)
        daemon.ask.act("kill", str(hang), str(command))
        daemon.until_all_ended()
        for id in behind:
            assert daemon.job(id).attempts == 1
            assert daemon.told(id).count("action_started") == 1


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_f44_the_second_signal_is_quick(tmp_path: Path, second: signal.Signals) -> None:
    with trial(tmp_path, TASKS, HANDLERS, LONG_GRACE) as daemon:
        daemon.start()
        ids = [daemon.enqueue("hang", path="hanging"), daemon.enqueue("sleep")]
        daemon.noted_pid("hanging")
        daemon.until_told(ids[1], "action_started")
        daemon.signal(signal.SIGTERM)
        eventually(lambda: daemon.ask.status().state == "draining", "a drain")
        assert daemon.job(ids[0]).state is JobState.LEASED
        left = daemon.processes()
        daemon.hang_up()
        daemon.signal(second)
        assert daemon.process is not None
        assert daemon.process.wait(30) == 0

        assert not any(map(is_alive, left))
        daemon.check_store()
        daemon.start()
        for id in ids:
            assert daemon.told(id)[1:3] == ["action_started", "job_interrupted"]


def test_f44_a_stop_during_the_start_is_heard(tmp_path: Path) -> None:
    for delay in (0.05, 0.2, 0.35, 0.5):
        with trial(tmp_path, TASKS, HANDLERS) as daemon:
            daemon.start(ready=False)
            time.sleep(delay)  # wherever the start is by then
            daemon.signal(signal.SIGTERM)
            assert daemon.process is not None
            code = daemon.process.wait(30)
            # Before Python has got to our handlers, the kernel's own answer stands.
            assert code in (0, -signal.SIGTERM), daemon.log.read_text()
            assert "Traceback" not in daemon.log.read_text()
