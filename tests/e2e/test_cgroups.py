"""A daemon whose cgroup has been delegated to it, as systemd does with `Delegate=yes`."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from redrive.lifecycle import JobState
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

[tasks.hang]
python = "handlers:hang"
"""


@pytest.fixture
def delegated() -> Iterator[Path]:
    folder = UNIFIED / f"test-{uuid.uuid4()}"
    folder.mkdir()
    os.setxattr(folder, "trusted.delegate", b"1")
    yield folder
    for leaf in folder.iterdir():
        if leaf.is_dir():
            leaf.rmdir()
    folder.rmdir()


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
    assert not [each for each in delegated.iterdir() if each.is_dir() and "." in each.name]
