"""With a control group, nobody gets away."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from redrived.processes.cgroup import Cgroup, delegated
from redrived.processes.command import CommandRun
from redrived.processes.commands import Commands
from support.processes import Workshop, eventually, is_alive

MOUNTS = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))
UNIFIED = next((mount for mount in MOUNTS if (mount / "cgroup.procs").exists()), MOUNTS[0])

needs_cgroups = pytest.mark.skipif(
    not os.access(UNIFIED / "cgroup.procs", os.W_OK), reason="needs root and cgroup v2"
)


@pytest.fixture
def above(workshop: Workshop) -> Iterator[Path]:
    folder = UNIFIED / workshop.owner
    folder.mkdir()
    yield folder
    folder.rmdir()


@needs_cgroups
async def test_killing_the_group_takes_whoever_left_session_mark_and_parent(
    workshop: Workshop, above: Path
) -> None:
    commands = Commands(workshop.trees, workshop.outputs, workshop.folder / "run", cgroups=above)
    workshop.commands = commands
    run = workshop.running("sleep 0.1; (env -i setsid sleep 300 & echo $! > pid); sleep 300")
    await eventually(lambda: (workshop.folder / "pid").exists())
    pid = int((workshop.folder / "pid").read_text())
    # An older tree might own it too, so only the group can tell whose it is.
    older = workshop.running(["sleep", "300"])

    await run.end(grace=0)

    assert isinstance(run, CommandRun)
    assert not is_alive(pid)
    assert [entry.name for entry in os.scandir(above) if entry.is_dir()] == [older.command.name]
    await older.end(grace=0)


def test_out_of_memory_is_what_the_kernel_counted(tmp_path: Path) -> None:
    cgroup = Cgroup(tmp_path)
    assert not cgroup.out_of_memory()
    events = tmp_path / "memory.events"
    events.write_text("low 0\nmax 3\noom 0\noom_kill 0\noom_group_kill 0\n")
    assert not cgroup.out_of_memory()
    events.write_text("low 0\nmax 3\noom 1\noom_kill 12\noom_group_kill 0\n")
    assert cgroup.out_of_memory()


def test_a_group_that_cannot_be_made_is_done_without(tmp_path: Path) -> None:
    assert Cgroup.create(tmp_path / "missing", "1.1") is None


def test_only_what_was_delegated_is_used() -> None:
    folder = delegated()
    assert folder is None or os.access(folder, os.W_OK)
