"""A daemon whose cgroup has been delegated to it, as systemd does with `Delegate=yes`."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from redrive.lifecycle import JobState
from redrived.processes.cgroup import Cgroup
from support.daemon import eventually
from support.faults import HANDLERS
from support.processes import is_alive
from support.trial import Trial, trial

MOUNTS = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))
UNIFIED = next((mount for mount in MOUNTS if (mount / "cgroup.procs").exists()), MOUNTS[0])

pytestmark = pytest.mark.skipif(
    not os.access(UNIFIED / "cgroup.procs", os.W_OK), reason="needs root and cgroup v2"
)

# It runs away at once, without anything of ours: no session, no parent, no environment.
TASKS = """
[pools.default]
path = ["."]

[tasks.command]
command = '(env -i setsid sleep 600 & echo $! >> pids); sleep 600'

[tasks.hidden]
command = '(env -i setsid sleep 600 >/dev/null 2>&1 & echo $! >> pids); sleep 600'

[tasks.hide_and_hang]
python = "handlers:hide_and_hang"

[tasks.hang]
python = "handlers:hang"
"""

HIDE_AND_HANG = """
import subprocess

def hide_and_hang():
    line = "env -i setsid sleep 600 >/dev/null 2>&1 & echo $! >> pids"
    subprocess.run(["sh", "-c", line], check=True)
    time.sleep(600)
"""

INNER = f"""
[tasks.redrived]
command = ["{sys.executable}", "-m", "redrived", "--config", "{{{{ args.config }}}}"]
env = {{ PYTHONPATH = "${{PYTHONPATH:-}}" }}
"""


@pytest.fixture
def delegated() -> Iterator[Path]:
    folder = UNIFIED / f"test-{uuid.uuid4()}"
    folder.mkdir()
    os.setxattr(folder, "trusted.delegate", b"1")
    yield folder
    group = Cgroup(folder)
    group.kill()  # who is there only when a test has failed
    eventually(lambda: not group.members(), "they are gone")
    group.remove()


def start_in(group: Path, daemon: Trial) -> None:
    enter = f"open('{group}/cgroup.procs', 'w').write('0')"
    go_on = "os.execv(sys.executable, [sys.executable, '-m', 'redrived', *sys.argv[1:]])"
    daemon.program = ("-c", f"import os, sys; {enter}; {go_on}")
    daemon.start()


def test_nothing_escapes_a_daemon_with_a_cgroup_of_its_own(tmp_path: Path, delegated: Path) -> None:
    with trial(tmp_path, TASKS, HANDLERS) as daemon:
        start_in(delegated, daemon)
        ids = [daemon.enqueue("command") for _ in range(2)]
        eventually(lambda: len(daemon.wrote("pids")) == 2, "both have run away")
        worker = daemon.enqueue("hang", path="worker")
        pid = daemon.noted_pid("worker")
        assert "/worker." in Path(f"/proc/{pid}/cgroup").read_text()

        for id in ids:
            assert daemon.run("kill", str(id)).returncode == 0
            assert daemon.until_ended(id).state is JobState.CANCELLED

        assert not any(is_alive(int(escaped)) for escaped in daemon.wrote("pids"))
        daemon.run("kill", str(worker))
        daemon.until_ended(worker)
        assert daemon.stop() == 0
    assert groups_in(delegated) == []


def test_two_daemons_in_one_group_end_only_what_is_their_own(
    tmp_path: Path, delegated: Path
) -> None:
    with one_in(tmp_path / "a") as first, one_in(tmp_path / "b") as second:
        start_in(delegated, first)
        start_in(delegated, second)
        ids = [daemon.enqueue("command") for daemon in (first, second)]
        assert ids[0] == ids[1]
        ended, spared = (daemon.noted_pid("pids") for daemon in (first, second))
        first.run("kill", str(ids[0]))
        assert first.until_ended(ids[0]).state is JobState.CANCELLED
        assert (is_alive(ended), is_alive(spared)) == (False, True)
        assert first.stop() == 0
        assert is_alive(spared)
        assert second.stop() == 0
    assert groups_in(delegated) == []


def test_a_daemon_that_is_a_job_of_another_ends_with_that_job_and_all_that_it_runs(
    tmp_path: Path, delegated: Path
) -> None:
    with one_in(tmp_path / "outer", INNER) as outer, one_in(tmp_path / "inner") as inner:
        start_in(delegated, outer)
        job = outer.enqueue("redrived", config=str(inner.config))
        eventually(lambda: inner.run("status").returncode == 0, "the inner one is up", every=0.5)
        first, second = (inner.enqueue("command") for _ in range(2))
        eventually(lambda: len(inner.wrote("pids")) == 2, "both have run away")
        inner.run("kill", str(first))
        assert inner.until_ended(first).state is JobState.CANCELLED
        assert inner.job(second).state is JobState.LEASED
        outer.run("kill", str(job))
        assert outer.until_ended(job).state is JobState.CANCELLED
        assert not any(is_alive(int(pid)) for pid in inner.wrote("pids"))
        assert outer.stop() == 0
    assert groups_in(delegated) == []


def test_what_hides_from_the_next_daemon_everywhere_else_is_found_in_the_group(
    tmp_path: Path, delegated: Path
) -> None:
    with one_in(tmp_path) as daemon:
        start_in(delegated, daemon)
        daemon.enqueue("hidden")
        pid = daemon.noted_pid("pids")
        daemon.pull_the_plug()
        assert is_alive(pid)
        start_in(delegated, daemon)
        assert not is_alive(pid)
        assert len(groups_in(delegated)) == 1
        assert daemon.stop() == 0
    assert groups_in(delegated) == []


@pytest.mark.parametrize("task", ["hidden", "hide_and_hang"])
def test_who_has_run_away_is_shown_with_what_its_job_uses(
    tmp_path: Path, delegated: Path, task: str
) -> None:
    with one_in(tmp_path) as daemon:
        start_in(delegated, daemon)
        id = daemon.enqueue(task)
        pid = daemon.noted_pid("pids")
        usage = daemon.ask.show_job(id).usage
        assert usage is not None
        assert pid in usage.pids
        assert len(usage.pids) == len(set(usage.pids))
        assert daemon.stop() == 0


@pytest.mark.parametrize("is_delegated", [True, False])
def test_the_log_and_the_doctor_say_whether_there_are_cgroups(
    tmp_path: Path, delegated: Path, is_delegated: bool
) -> None:
    if not is_delegated:
        os.removexattr(delegated, "trusted.delegate")
    with one_in(tmp_path) as daemon:
        start_in(delegated, daemon)
        [group] = groups_in(delegated) if is_delegated else [""]
        words = f"ended by its cgroup, in {delegated}/{group}" if group else "ended by session"
        assert words in daemon.log.read_text()
        assert f"ok   reach: an attempt is {words}" in daemon.run("doctor").stdout


@contextmanager
def one_in(folder: Path, tasks: str = TASKS) -> Generator[Trial]:
    folder.mkdir(exist_ok=True)
    with trial(folder, tasks, HANDLERS + HIDE_AND_HANG) as daemon:
        yield daemon


def groups_in(delegated: Path) -> list[str]:
    """What daemons have made there; the leaf of one that has moved is no matter."""
    return [each.name for each in delegated.iterdir() if each.is_dir() and "." in each.name]
