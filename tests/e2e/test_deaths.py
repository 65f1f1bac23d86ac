"""Workers and daemons that die, and what is left of the work.

F01 and so on are the numbers of a list of faults that all queues share: a real daemon, real
processes, a real signal, and then what the store and /proc say about it.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

from redrive.lifecycle import JobState
from redrived.processes.marks import owner_of
from support.daemon import eventually
from support.faults import HANDLERS, TASKS
from support.processes import is_alive
from support.trial import trial

# ---- a worker dies -------------------------------------------------------------------------


def test_f01_a_killed_worker_loses_its_attempt_and_nothing_of_it_is_left(tmp_path: Path) -> None:
    with trial(tmp_path, TASKS, HANDLERS) as daemon:
        daemon.start()
        id = daemon.enqueue("family", path="pids")
        eventually(lambda: len(daemon.wrote("pids")) == 2, "the handler's child")
        child, worker = map(int, daemon.wrote("pids"))
        os.kill(worker, signal.SIGKILL)

        job = daemon.until_ended(id)

        assert (job.state, job.attempts) == (JobState.DONE, 2)
        assert daemon.told(id)[1:5] == [
            "action_started",
            "action_lost",
            "action_error",
            "step_retry",
        ]
        assert not is_alive(child)
        assert job.budgets is not None
        assert job.budgets.lost == 1


def test_f14_a_job_that_kills_its_worker_each_time_is_dead_after_max_lost(tmp_path: Path) -> None:
    with trial(tmp_path, TASKS, HANDLERS) as daemon:
        daemon.start()
        job = daemon.until_ended(daemon.enqueue("vanish"))

        assert (job.state, job.reason, job.attempts) == (JobState.DEAD, "poison", 3)


def test_f15_what_may_run_once_is_not_run_again_after_its_worker_died(tmp_path: Path) -> None:
    with trial(tmp_path, TASKS, HANDLERS) as daemon:
        daemon.start()
        once, failed, held = (
            daemon.enqueue(f"vanish_{which}") for which in ("once", "fail", "hold")
        )

        assert daemon.until_ended(once).reason == "exhausted"
        assert daemon.until_ended(failed).reason == "on_lost"
        daemon.until_told(held, "step_retry")
        job = daemon.job(held)
        assert (job.state, job.held) == (JobState.RETRY, True)
        for id in (once, failed, held):
            assert daemon.told(id).count("action_started") == 1


# ---- the daemon dies -----------------------------------------------------------------------


def test_f03_what_a_killed_daemon_left_is_ended_before_anything_new_begins(tmp_path: Path) -> None:
    stranger = subprocess.Popen(
        ["sleep", "600"], env={**os.environ, "REDRIVE_STORE": "another.n1"}, start_new_session=True
    )
    try:
        with trial(tmp_path, TASKS, HANDLERS) as daemon:
            daemon.start()
            running = [
                daemon.enqueue("family", path="pids"),
                daemon.enqueue("brood"),
                daemon.enqueue("sleep"),
                daemon.enqueue("hang", path="hanging"),
            ]
            eventually(lambda: len(daemon.wrote("pids")) == 2, "the handler's child")
            eventually(lambda: daemon.wrote("brood") and daemon.wrote("hanging"), "the rest")
            for id in running:
                daemon.until_told(id, "action_started")
            waiting = daemon.enqueue("say")
            left = daemon.processes()
            daemon.pull_the_plug()
            assert sum(map(is_alive, left)) >= 4

            daemon.start()
            for id in running:
                daemon.until_told(id, "action_lost")
                daemon.until_told(id, "step_retry")
            daemon.until_ended(waiting)

            assert not any(map(is_alive, left))
            assert is_alive(stranger.pid)
            log = [event for event in daemon.events() if event.job in (*running, waiting)]
            lost = [event.seq for event in log if event.type == "action_lost"]
            began = [e.seq for e in log if e.type == "action_started" and e.seq > min(lost)]
            assert len(lost) == len(running)
            assert max(lost) < min(began)
    finally:
        stranger.kill()
        stranger.wait()


PRINTING = """
import subprocess, time

def print_and_block(path):
    print("said by Python", flush=True)
    subprocess.run(["echo", "said by a child"], check=True)
    open(path, "w").close()
    while True:
        try:
            time.sleep(600)
        except BaseException:
            pass

def quiet_and_block(path):
    open(path, "w").close()
    while True:
        try:
            time.sleep(600)
        except BaseException:
            pass
"""

PRINTING_TASKS = """
[pools.default]
path = ["."]
[tasks.print_and_block]
python = "handlers:print_and_block"
retry = 1
[tasks.quiet_and_block]
python = "handlers:quiet_and_block"
retry = 1
"""


def test_a_daemon_on_a_copy_of_the_store_ends_nothing_of_the_one_on_the_store(
    tmp_path: Path,
) -> None:
    for name in ("first", "copy"):
        (tmp_path / name).mkdir()
    with (
        trial(tmp_path / "first", TASKS, HANDLERS) as first,
        trial(tmp_path / "copy", TASKS, HANDLERS) as copy,
    ):
        first.start().stop()
        backup = first.folder / "state" / "redrive.db"
        copy.run("restore", str(backup), check=True)
        first.start()
        ids = [first.enqueue("hang", path="hanging"), first.enqueue("sleep")]
        hanging = first.noted_pid("hanging")
        first.until_told(ids[1], "action_started")

        copy.start()

        assert is_alive(hanging)
        assert [first.told(id)[-1] for id in ids] == ["action_started"] * 2


def test_what_a_blocked_handler_has_printed_outlives_the_daemon(tmp_path: Path) -> None:
    with trial(tmp_path, PRINTING_TASKS, PRINTING) as daemon:
        daemon.start()
        quiet = daemon.enqueue("quiet_and_block", path="quiet")
        printing = daemon.enqueue("print_and_block", path="printed")
        eventually((tmp_path / "quiet").exists, "the handler that prints nothing")
        eventually((tmp_path / "printed").exists, "the handler that prints")
        daemon.pull_the_plug()
        daemon.start()

        assert daemon.until_ended(printing).state is JobState.DEAD
        assert daemon.run("logs", str(printing)).stdout == "said by Python\nsaid by a child\n"
        assert daemon.until_ended(quiet).state is JobState.DEAD
        assert daemon.ask.log(quiet).size == 0


def test_f09_f10_no_job_is_lost_however_often_the_daemon_is_killed(tmp_path: Path) -> None:
    dice = random.Random(9)
    tasks = (
        TASKS
        + """
[tasks.append]
python = "handlers:write"
retry = "always"
max_lost = 100000
[tasks.append_by_command]
command = "echo $REDRIVE_ARG_N >> by_command"
retry = "always"
max_lost = 100000
"""
    )
    with trial(tmp_path, tasks, HANDLERS) as daemon:
        daemon.start()
        jobs = daemon.enqueue_many("append", 1200, path="by_python", seconds=0.002)
        commands = daemon.enqueue_many("append_by_command", 300)
        for _ in range(8):
            time.sleep(dice.uniform(0.01, 0.5))  # the moment is the test
            daemon.pull_the_plug()
            daemon.check_store()
            daemon.start()
        daemon.until_all_ended()

        states = Counter(daemon.job(id).state for id in (*jobs[::50], *commands[::20]))
        assert set(states) == {JobState.DONE}
        assert daemon.ask.status().states["done"] == len(jobs) + len(commands)
        assert {int(n) for n in daemon.wrote("by_python")} == set(range(len(jobs)))
        assert {int(n) for n in daemon.wrote("by_command")} == set(range(len(commands)))
        daemon.check_execution_counts([*jobs[::20], *commands[::5]])
        daemon.hang_up()
        assert daemon.stop() == 0
        daemon.check_store()


def test_who_outlived_its_attempt_is_gone_while_the_daemon_works(tmp_path: Path) -> None:
    with trial(tmp_path, TASKS, HANDLERS) as daemon:
        daemon.start()
        owner = owner_of(daemon.ask.hello().store, "n1", tmp_path / "state")
        marks = {"REDRIVE_STORE": owner, "REDRIVE_ATTEMPT": "99.99"}
        id = daemon.enqueue("runaway", path="outlived", env=marks)
        outlived = daemon.noted_pid("outlived")
        eventually(lambda: not is_alive(outlived), "it is gone")
        told = f"outlived their attempts: [{outlived}]"
        eventually(lambda: told in daemon.log.read_text(), "it is told")
        assert daemon.told(id)[-1] == "action_started"  # the job itself goes on
        daemon.ask.act("kill", id)
        daemon.until_ended(id)
