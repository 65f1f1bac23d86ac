"""Jobs that run, seen from outside: their output while it grows, its limit, pauses."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

from redrive.lifecycle import JobState
from redrive.models import Progress
from support.daemon import eventually
from support.trial import trial

HANDLERS = """
import os, socket, sys, time

def advance(steps, fail=False):
    import redrive
    for n in range(1, steps + 1):
        redrive.current_job().progress(n, steps, f"step {n}")
    if fail:
        raise ValueError("and then it failed")

def devour():
    return len(bytearray(8 << 30))

def who():
    return os.getpid()

def talk(path):
    for n in range(3):
        print("line", n, flush=True)
    open(path, "w").close()
    time.sleep(600)

def flood():
    while True:
        sys.stdout.write("x" * 65536)

def nap(n, seconds):
    time.sleep(seconds)

def block(path):
    open(path, "w").close()
    time.sleep(600)

if __name__ == "__main__":
    told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    told.sendto(sys.argv[1].encode(), os.environ["NOTIFY_SOCKET"])
"""

TASKS = """
[pools.default]
path = ["."]
processes = 1
[tasks.advance]
python = "handlers:advance"
[tasks.devour]
python = "handlers:devour"
limits = { memory = "2G", open_files = 1024, nice = 5 }
[tasks.who]
python = "handlers:who"
[tasks.announce]
command = ["PYTHON", "handlers.py", "STATUS=ready\\nX_REDRIVE_PROGRESS=2/2"]
heartbeat = { from = "notify", stalled_after = "5m" }
[tasks.talk]
python = "handlers:talk"
grace = "200ms"
[tasks.flood]
python = "handlers:flood"
limits = { output = "1M" }
grace = "200ms"
[tasks.fail]
command = ["false"]
retry = { max_attempts = 2, delays = ["10ms"] }
[tasks.nap]
python = "handlers:nap"
[tasks.block]
python = "handlers:block"
[tasks.fetch]
http = { url = "http://127.0.0.1:{{ args.port }}/" }
timeout = "300ms"
""".replace("PYTHON", sys.executable)


def test_the_last_progress_of_an_attempt_is_kept_however_it_ends(tmp_path: Path) -> None:
    with trial(tmp_path, TASKS, HANDLERS) as daemon:
        daemon.start()
        done = daemon.until_ended(daemon.enqueue("advance", steps=3))
        dead = daemon.until_ended(daemon.enqueue("advance", steps=2, fail=True))
        command = daemon.until_ended(daemon.enqueue("announce"))

        assert done.progress == Progress(done=3, total=3, text="step 3")
        assert (dead.state, dead.progress) == ("dead", Progress(done=2, total=2, text="step 2"))
        assert command.progress == Progress(done=2, total=2, text="ready")


def test_the_log_of_a_running_pool_job_is_followed(tmp_path: Path) -> None:
    with trial(tmp_path, TASKS, HANDLERS) as daemon:
        daemon.start()
        id = daemon.enqueue("talk", path="talked")
        eventually((tmp_path / "talked").exists, "the lines")
        reply = daemon.ask.log(id)
        assert (reply.data, reply.finished) == (b"line 0\nline 1\nline 2\n", False)
        following = subprocess.Popen(
            daemon.command("logs", str(id), "-f"), stdout=subprocess.PIPE, bufsize=0
        )
        assert following.stdout is not None
        assert following.stdout.readline() == b"line 0\n"
        daemon.ask.act("kill", str(id))
        rest, _ = following.communicate(timeout=30)

        assert rest == b"line 1\nline 2\n"
        assert daemon.ask.log(id).finished


def test_the_log_of_an_earlier_execution_names_its_own_attempt(tmp_path: Path) -> None:
    with trial(tmp_path, TASKS, HANDLERS) as daemon:
        daemon.start()
        id = daemon.enqueue("fail")
        daemon.until_ended(id)
        daemon.run("requeue", str(id), check=True)
        daemon.until_told(id, "step_retry_exhausted", n=2)
        replies = [daemon.ask.log(id, attempt=n) for n in (1, 2, 3, 4)]

    assert [(reply.execution, reply.attempt) for reply in replies] == [
        (1, 1),
        (2, 2),
        (3, 1),
        (4, 2),
    ]


def test_f48_a_pool_job_that_prints_without_end_is_ended(tmp_path: Path) -> None:
    with trial(tmp_path, TASKS, HANDLERS) as daemon:
        daemon.start()
        id = daemon.enqueue("flood")
        job = daemon.until_ended(id)

        assert job.error is not None
        assert (job.state, job.error.error_type) == (JobState.DEAD, "log_limit")
        assert daemon.ask.log(id).size == 1024 * 1024


def test_a_limit_ends_a_pool_job_and_its_worker_runs_nothing_else(tmp_path: Path) -> None:
    with trial(tmp_path, TASKS, HANDLERS) as daemon:
        daemon.start()
        before = daemon.until_ended(daemon.enqueue("who"))
        hungry = daemon.until_ended(daemon.enqueue("devour"))
        after = daemon.until_ended(daemon.enqueue("who"))

        assert hungry.error is not None
        assert (hungry.state, hungry.error.error_type) == (JobState.DEAD, "out_of_memory")
        assert after.state == JobState.DONE
        assert after.result != before.result


def test_a_pause_takes_back_what_has_not_begun(tmp_path: Path) -> None:
    with trial(tmp_path, TASKS, HANDLERS) as daemon:
        daemon.start()
        daemon.enqueue_many("nap", 300, seconds=0)  # so that its jobs are known to be tiny
        daemon.until_all_ended()
        daemon.enqueue("block", path=str(tmp_path / "blocked"))
        ids = daemon.enqueue_many("nap", 20, seconds=0)
        eventually((tmp_path / "blocked").exists, "the worker is busy")
        daemon.run("pause", "task:nap", check=True)

        def all_are_back() -> bool:
            return {daemon.job(id).state for id in ids} == {JobState.QUEUED}

        eventually(all_are_back, "unbegun jobs wait again")
        assert all(daemon.told(id) == ["step_started"] for id in ids)


def test_f51_a_server_that_never_answers_costs_its_timeout(tmp_path: Path) -> None:
    with trial(tmp_path, TASKS, HANDLERS) as daemon, socket.create_server(("127.0.0.1", 0)) as mute:
        daemon.start()
        id = daemon.enqueue("fetch", port=mute.getsockname()[1])
        job = daemon.until_ended(id)

        assert job.error is not None
        assert job.error.error_type == "timeout"
        assert "action_timeout" in daemon.told(id)
