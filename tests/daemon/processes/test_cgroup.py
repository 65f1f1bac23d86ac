"""With a control group, nobody gets away."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from redrived.processes.cgroup import Cgroup, delegated
from redrived.processes.commands import Commands
from redrived.processes.tree import Trees
from support import workers
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


@pytest.fixture
def grouped(workshop: Workshop, above: Path) -> Workshop:
    workshop.trees = Trees(workshop.owner, cgroups=above)
    workshop.commands = Commands(workshop.trees, workshop.outputs, workshop.folder / "run")
    return workshop


@needs_cgroups
async def test_killing_the_group_takes_whoever_left_session_mark_and_parent_at_once(
    grouped: Workshop, above: Path
) -> None:
    """What a command forks first is in its group, however soon it runs away."""
    line = "(env -i setsid sleep 300 & echo $! > pid.$REDRIVE_JOB); sleep 300"
    runs = [grouped.running(line) for _ in range(20)]
    files = [grouped.folder / f"pid.{run.command.job}" for run in runs]
    await eventually(lambda: all(file.exists() and file.read_text().strip() for file in files))
    escaped = [int(file.read_text()) for file in files]
    # An older tree might own them too, so only the group can tell whose they are.
    older = grouped.running(["sleep", "300"])

    await asyncio.gather(*(run.end(grace=0) for run in runs))

    assert [pid for pid in escaped if is_alive(pid)] == []
    assert groups_in(above) == [older.command.name]
    await older.end(grace=0)
    assert groups_in(above) == []


@needs_cgroups
async def test_a_program_that_is_nowhere_is_told_in_the_same_words(
    grouped: Workshop, above: Path
) -> None:
    exited = await grouped.exit_of(["no-such-program"])
    assert exited.code == 127
    words = "cannot run no-such-program: there is no such program that can be executed"
    assert exited.stderr_tail == words
    assert groups_in(above) == []


@needs_cgroups
async def test_a_group_that_lets_nobody_in_is_done_without(
    grouped: Workshop, above: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Cgroup, "door", above / "missing" / "cgroup.procs")
    exited = await grouped.exit_of("echo well")
    assert (exited.code, exited.stderr_tail) == (0, "")


@needs_cgroups
@pytest.mark.parametrize("how", ["ended", "killed by somebody", "gone home"])
async def test_whatever_a_handler_started_ends_with_its_worker(
    tmp_path: Path, above: Path, how: str
) -> None:
    go, pid_file = tmp_path / "go", tmp_path / "pid"
    async with workers.workshop(tmp_path, cgroups=above, processes=2) as shop:
        # It might be another worker's as well, as far as age can tell.
        shop.give("wait_for", path=str(tmp_path / "never"))
        await shop.ear.until(lambda: len(shop.ear.ready_workers) == 2)
        second = shop.ear.ready_workers[1]
        job = shop.job("leave_a_stranger_and_wait", pid_file=str(pid_file), until=str(go))
        second.hand([job], None, begun=True)
        await shop.ear.until(pid_file.exists)
        stranger = int(pid_file.read_text())
        assert not second.process.is_alone()

        if how == "ended":
            await second.end(grace=0)
        elif how == "killed by somebody":
            os.kill(second.process.pid, signal.SIGKILL)
        else:
            second.retire()
            go.touch()
        await shop.ear.until(second.gone.is_set)

        assert not is_alive(stranger)
        assert f"worker.{second.process.name}" not in groups_in(above)
    assert groups_in(above) == []


def groups_in(above: Path) -> list[str]:
    return [entry.name for entry in os.scandir(above) if entry.is_dir()]


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
