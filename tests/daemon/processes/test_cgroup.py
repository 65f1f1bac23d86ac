"""With a control group, nobody gets away."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from redrived.engine.python_runner import how_it_died
from redrived.processes import cgroups
from redrived.processes.cgroup import Cgroup
from redrived.processes.cgroups import Cgroups, share_out
from redrived.processes.commands import Commands
from redrived.processes.hook_command import HookCommands
from redrived.processes.tree import Trees
from support import workers
from support.processes import PATIENCE, Workshop, eventually, is_alive

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
    workshop.trees = Trees(workshop.owner, cgroups=Cgroups(Cgroup(above)))
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
    async with workers.workshop(tmp_path, cgroups=Cgroups(Cgroup(above)), processes=2) as shop:
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


@needs_cgroups
async def test_a_worker_that_the_kernel_killed_for_memory_is_told_as_that(
    tmp_path: Path, above: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Cgroup, "out_of_memory", lambda self: True)  # the kernel's word
    async with workers.workshop(tmp_path, cgroups=Cgroups(Cgroup(above))) as shop:
        shop.give("wait_for", path=str(tmp_path / "never"))
        process = shop.worker.process
        await shop.ear.until(lambda: (last := process.begun_last()) and last.job)
        os.kill(shop.worker.process.pid, signal.SIGKILL)
        await shop.ear.until(lambda: shop.ear.losses)
    told = how_it_died(shop.ear.losses[0])
    assert told == "the worker process was killed by SIGKILL, for the memory it used (see `dmesg`)"


def groups_in(above: Path) -> list[str]:
    return [entry.name for entry in os.scandir(above) if entry.is_dir()]


@needs_cgroups
async def test_who_is_left_in_the_group_ends_with_its_command(
    grouped: Workshop, above: Path
) -> None:
    older = grouped.running(["sleep", "300"])
    line = "env -i setsid sh -c '(sleep 300 & echo $! > pid) >/dev/null 2>&1'"

    exited = await grouped.exit_of(line)

    assert exited.ended.escaped == (int((grouped.folder / "pid").read_text()),)
    assert not is_alive(exited.ended.escaped[0])
    assert groups_in(above) == [older.command.name]
    await older.end(grace=0)


@needs_cgroups
@pytest.mark.parametrize("who", ["nobody", "somebody"])
async def test_a_group_that_a_command_made_inside_its_own_ends_with_it(
    grouped: Workshop, above: Path, who: str
) -> None:
    older = grouped.running(["sleep", "300"])  # it might own them too, as far as age can tell
    inside = above / "2.2" / "inside" / "deeper"
    lines = [f"mkdir -p {inside}"]
    if who == "somebody":
        lines.append(f"echo $$ > {inside}/cgroup.procs")
        lines.append("env -i setsid sh -c '(sleep 300 & echo $! > pid) >/dev/null 2>&1'")

    exited = await grouped.exit_of("\n".join(lines))

    assert groups_in(above) == [older.command.name]
    if who == "somebody":
        pid = int((grouped.folder / "pid").read_text())
        assert exited.ended.escaped == (pid,)
        assert not is_alive(pid)
    await older.end(grace=0)


@needs_cgroups
@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("(env -i setsid sleep 300 & echo $! > pid) >/dev/null 2>&1", None),
        ("echo $$ > pid; exec /nowhere/prog", "exit code 127: "),
    ],
    ids=["one that ran away", "itself"],
)
async def test_whatever_a_hook_started_ends_with_it(
    grouped: Workshop, above: Path, line: str, problem: str | None
) -> None:
    older = grouped.running(["sleep", "300"])  # it might own them too, as far as age can tell
    hooks = HookCommands(grouped.trees, grouped.folder / "hooks")

    said = await hooks.run(
        ["sh", "-c", line], cwd=str(grouped.folder), facts=b"{}", timeout=PATIENCE
    )

    assert said is None if problem is None else said and said.startswith(problem)
    assert not is_alive(int((grouped.folder / "pid").read_text()))
    assert groups_in(above) == [older.command.name]
    await older.end(grace=0)


def test_out_of_memory_is_what_the_kernel_counted(tmp_path: Path) -> None:
    group = Cgroup(tmp_path)
    assert not group.out_of_memory()
    events = tmp_path / "memory.events"
    events.write_text("low 0\nmax 3\noom 0\noom_kill 0\noom_group_kill 0\n")
    assert not group.out_of_memory()
    events.write_text("low 0\nmax 3\noom 1\noom_kill 12\noom_group_kill 0\n")
    assert group.out_of_memory()


def test_a_group_that_cannot_be_made_is_done_without(tmp_path: Path) -> None:
    assert Cgroup(tmp_path / "missing").create("1.1") is None


def test_nobody_runs_in_a_group_whose_children_are_counted(tmp_path: Path) -> None:
    """Files stand in for a kernel whose memory controller is not taken by version 1."""
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    with_own(tmp_path, lambda: share_out(tmp_path, "memory"))
    assert (tmp_path / "supervisor" / "cgroup.procs").read_text() == str(os.getpid())
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+memory"


def test_a_daemon_in_a_leaf_stays_there(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("memory\n")
    with_own(tmp_path / "leaf", lambda: share_out(tmp_path, "memory"))
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+memory"
    assert not (tmp_path / "supervisor").exists()


def test_without_the_controller_nobody_moves(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("hugetlb\n")
    share_out(tmp_path, "memory")
    assert os.listdir(tmp_path) == ["cgroup.controllers"]


def test_a_group_that_cannot_be_laid_out_is_used_as_it_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "cgroup.controllers").write_text("memory\n")
    (tmp_path / "cgroup.subtree_control").mkdir()  # nothing can be written there
    share_out(tmp_path, "memory")
    assert "the cgroups of attempts have no memory controller" in caplog.text


def with_own(folder: Path, do: Callable[[], None]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cgroups, "_own", lambda: folder)
        do()


@needs_cgroups
def test_the_kernel_counts_who_it_kills_for_memory_in_each_group(above: Path) -> None:
    if "memory" not in (above / "cgroup.controllers").read_text().split():
        pytest.skip("cgroup v2 has no memory controller here")
    inside(above, prepare("a", "1"), mark=True)
    own = Cgroup(above / "a.1.redrive")
    made = own.create("1.1")
    assert made is not None
    assert (made.folder / "memory.events").exists()
    own.remove()
    (above / "supervisor").rmdir()


def test_each_group_on_the_way_to_those_of_attempts_shares_out_what_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files stand in for a kernel whose memory controller is not taken by version 1."""
    make = Path.mkdir

    def make_with_files(folder: Path, *args: Any, **options: Any) -> None:
        make(folder, *args, **options)
        (folder / "cgroup.procs").touch()
        above = folder.parent / "cgroup.subtree_control"
        shared = above.read_text().strip("+") if above.exists() else ""
        (folder / "cgroup.controllers").write_text(shared)

    (tmp_path / "cgroup.controllers").write_text("cpu memory")
    monkeypatch.setattr(Path, "mkdir", make_with_files)
    monkeypatch.setattr(cgroups, "delegated", lambda: tmp_path)
    made: list[Cgroups | None] = []
    with_own(tmp_path, lambda: made.append(cgroups.prepared("a", "1")))
    assert made[0] is not None
    assert (made[0].own.folder / "cgroup.subtree_control").read_text() == "+memory"


@needs_cgroups
def test_a_daemon_has_a_group_of_its_own_and_finds_those_that_were_on_its_state(
    above: Path,
) -> None:
    assert inside(above, prepare("a", "1"), mark=True) == "a.1.redrive"
    assert inside(above, prepare("b", "2")) == "b.2.redrive"
    assert inside(above, prepare("a", "3")) == "a.3.redrive a.1.redrive"
    for each in above.glob("*.redrive"):
        each.rmdir()


@needs_cgroups
@pytest.mark.parametrize("group", ["a.1.redrive/1.1", "a.1.redrive/1.1/inside"])
def test_a_daemon_that_is_a_job_of_another_stays_in_the_group_of_that_job(
    above: Path, group: str
) -> None:
    os.setxattr(above, "trusted.delegate", b"1")
    (above / group).mkdir(parents=True)
    assert inside(above / group, ASK) == str(above / group)
    Cgroup(above / "a.1.redrive").remove()


def prepare(state: str, start: str) -> str:
    """For a Python that says which groups it has, and finds."""
    return f"""
from redrived.processes import cgroups
made = cgroups.prepared({state!r}, {start!r})
print(*(each.folder.name for each in (made.own, *made.left)))
"""


ASK = "from redrived.processes.cgroups import delegated; print(delegated())"


@needs_cgroups
@pytest.mark.parametrize("mark", [True, False])
def test_only_what_was_delegated_is_used(above: Path, mark: bool) -> None:
    """Root could write into any other, too."""
    assert inside(above, ASK, mark=mark) == str(above if mark else None)


@needs_cgroups
@pytest.mark.parametrize(("name", "found"), [("supervisor", True), ("other.service", False)])
def test_a_leaf_of_the_delegated_group_leads_to_it(above: Path, name: str, found: bool) -> None:
    (above / name).mkdir()
    os.setxattr(above, "trusted.delegate", b"1")
    assert inside(above / name, ASK) == str(above if found else None)
    (above / name).rmdir()


def inside(group: Path, code: str, *, mark: bool = False) -> str:
    """What a Python says that was started in a group."""
    if mark:
        os.setxattr(group, "trusted.delegate", b"1")
    enter = f"open('{group}/cgroup.procs', 'w').write('0')"
    argv = [sys.executable, "-c", f"{enter}\n{code}"]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()
