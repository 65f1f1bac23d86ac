"""Faults from outside: processes killed, stopped and cut off, and what is left of the work.

Each test is a case of a list that all queues share (F01 and so on are its numbers): a real
daemon, real processes, a real signal, and then what the store and /proc say about it.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from redrive.client import AnswerLost
from redrive.lifecycle import JobState
from redrive.models import Event
from redrive.protocol.commands import PauseIt
from redrived.processes import proc
from support.daemon import eventually
from support.processes import is_alive
from support.trial import Trial, trial

HANDLERS = """
import os, signal, subprocess, sys, time
import redrive

def note(path, text):
    with open(path, "a") as file:
        file.write(f"{text}\\n")

def write(path, n, seconds=0.0):
    time.sleep(seconds)
    note(path, n)

def hang(path):
    note(path, os.getpid())
    time.sleep(600)

def family(path):
    "Hangs the first time, with a child that has run away."
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    note(path, child.pid)
    note(path, os.getpid())
    if redrive.current_job().attempt == 1:
        time.sleep(600)
    child.kill()
    child.wait()

def runaway(path, env=None):
    "Forks twice, leaves its session, ignores SIGTERM, holds stdout."
    script = '''
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
open(PATH, "a").write(f"{os.getpid()}\\\\n")
while True: time.sleep(1)
'''.replace("PATH", repr(path))
    subprocess.run([sys.executable, "-c", script], env=env, check=True)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        try:
            time.sleep(1)
        except BaseException:
            pass

def beat_and_hang(path):
    job = redrive.current_job()
    job.heartbeat()
    note(path, os.getpid())
    while job.attempt == 1:
        time.sleep(0.05)

def beat_for(path, seconds):
    job = redrive.current_job()
    note(path, os.getpid())
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        job.heartbeat()
        time.sleep(0.05)

def close_call(n):
    "Ends when its watchdog is about to bite."
    redrive.current_job().heartbeat()
    time.sleep(0.35 + n % 10 * 0.025)

def vanish():
    os._exit(7)

def shout(n):
    print("x" * 1000)
"""

TASKS = """
[pools.default]
path = ["."]
processes = 4

[retry.soon]
max_attempts = 3
delays = ["50ms"]
jitter = 0
[retry.always]
max_attempts = 100000
delays = ["10ms"]
jitter = 0

[tasks.write]
python = "handlers:write"
[tasks.hang]
python = "handlers:hang"
retry = "soon"
grace = "300ms"
[tasks.family]
python = "handlers:family"
retry = "soon"
grace = "1s"
[tasks.runaway]
python = "handlers:runaway"
grace = "500ms"
[tasks.vanish]
python = "handlers:vanish"
retry = "always"
[tasks.vanish_once]
python = "handlers:vanish"
retry = 1
[tasks.vanish_fail]
python = "handlers:vanish"
retry = "soon"
on_lost = "fail"
[tasks.vanish_hold]
python = "handlers:vanish"
retry = "soon"
on_lost = "hold"
[tasks.shout]
python = "handlers:shout"
[tasks.sleep]
command = ["sleep", "600"]
grace = "1s"
retry = "soon"
[tasks.stubborn]
command = "trap '' TERM; echo $$$$ >> stubborn; while :; do sleep 0.1; done"
grace = "500ms"
[tasks.brood]
command = "setsid sleep 600 & echo $$! >> brood; setsid -f sleep 600; sleep 600"
grace = "1s"
retry = "soon"
[tasks.holder]
command = "setsid -f sleep 600; echo done"
[tasks.say]
command = ["echo", "said"]
"""


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


# ---- somebody stands still -----------------------------------------------------------------

WATCHED = """
[tasks.beat_and_hang]
python = "handlers:beat_and_hang"
heartbeat = { from = "job", every = "50ms", stalled_after = "500ms" }
grace = "300ms"
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
        assert told[1:] == [
            "action_started",
            "action_stalled",
            "action_error",
            "step_retry",
            "action_started",
            "action_completed",
        ]
        assert not is_alive(worker)


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
            job = daemon.until_ended(id)
            assert (job.state, job.attempts) == (JobState.DONE, 1)
            assert daemon.told(id)[1:] == ["action_started", "action_completed"]


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
            job = daemon.until_ended(id)
            assert (job.state, job.attempts) == (JobState.DONE, 1)
            assert daemon.told(id)[1:] == ["action_started", "action_completed"]
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


def test_f06_who_hides_even_his_environment_goes_with_the_daemon(tmp_path: Path) -> None:
    with trial(tmp_path, TASKS, HANDLERS) as daemon:
        daemon.start()
        id = daemon.enqueue("runaway", path=str(tmp_path / "runaways"), env={})
        escaped = daemon.noted_pid("runaways")
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

PATIENT = """
[daemon]
name = "n1"
state_dir = "./state"
runtime_dir = "./run"
concurrency = 4
shutdown_grace = "300ms"
"""
LONG_GRACE = PATIENT.replace("300ms", "10m")


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


# ---- things that are missing ---------------------------------------------------------------


def test_f49_a_lost_folder_of_outputs_stops_nothing_and_comes_back(tmp_path: Path) -> None:
    with trial(tmp_path, TASKS, HANDLERS) as daemon:
        daemon.start()
        outputs = tmp_path / "state" / "outputs"
        for id in (daemon.enqueue("say"), daemon.enqueue("shout", n=1)):
            daemon.until_ended(id)
        outputs.rename(tmp_path / "moved_away")
        outputs.write_text("in the way")  # root may write to what is read-only, not to this
        for id in (
            daemon.enqueue("say"),
            daemon.enqueue("shout", n=1),
            daemon.enqueue("shout", n=2),
        ):
            assert daemon.until_ended(id).state is JobState.DONE
        outputs.unlink()
        for n in range(5):  # each of the workers must find its folder again
            daemon.until_ended(daemon.enqueue("shout", n=n))
        said, shouted = daemon.enqueue("say"), daemon.enqueue("shout", n=1)

        assert daemon.until_ended(said).state is JobState.DONE
        assert daemon.until_ended(shouted).state is JobState.DONE
        assert daemon.ask.log(said).data == b"said\n"
        assert daemon.ask.log(shouted).data == b"x" * 1000 + b"\n"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """The folder of outputs, on a disk that is full after a few pages."""
    folder = tmp_path / "state" / "outputs"
    folder.mkdir(parents=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=128k", "none", folder], check=False
    )
    if mounted.returncode:
        pytest.skip("needs the right to mount")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_f18_a_disk_full_of_outputs_costs_words_not_jobs(tmp_path: Path, small_disk: Path) -> None:
    tasks = (
        TASKS
        + """
[tasks.fill]
command = "head -c 1000000 /dev/zero; true"
"""
    )
    with trial(tmp_path, tasks, HANDLERS) as daemon:
        daemon.start()
        ids = [daemon.enqueue("fill")]
        ids += daemon.enqueue_many("shout", 200)
        ids += [daemon.enqueue("fill") for _ in range(5)]
        for id in ids:
            assert daemon.until_ended(id).state is JobState.DONE
        for file in small_disk.rglob("*.out"):
            file.unlink()  # somebody makes room
        id = daemon.enqueue("say")
        daemon.until_ended(id)
        assert daemon.ask.log(id).data == b"said\n"


def test_f53_no_descriptors_left_is_a_pause_not_a_failure(tmp_path: Path) -> None:
    base = PATIENT.replace("concurrency = 4", "concurrency = 400")
    tasks = (
        TASKS
        + """
[tasks.nap]
command = "sleep 0.3"
"""
    )
    with trial(tmp_path, tasks, HANDLERS, base) as daemon:
        daemon.start(open_files=256)
        ids = daemon.enqueue_many("nap", 400)
        daemon.until_all_ended()

        states = Counter(daemon.job(id).state for id in ids[::10])
        assert set(states) == {JobState.DONE}
        waited = [event for event in daemon.events() if event.type == "job_interrupted"]
        assert waited, "the limit was never reached: the test is too easy"
        daemon.check_execution_counts(ids[::10])
