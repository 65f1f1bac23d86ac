"""Whoever an attempt started is gone when it has been ended; nobody else is."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from redrived.processes import proc
from redrived.processes.identity import Identity
from redrived.processes.tree import Trees
from support.ice import Ice
from support.processes import Workshop, eventually, everybody_with, is_alive

# A daemon as they are written: its own session, no parent, deaf to SIGTERM, stdout held open.
RUNAWAY = """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() > 0:
        os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    open(sys.argv[1] + ".new", "w").write(str(os.getpid()))
    os.rename(sys.argv[1] + ".new", sys.argv[1])
    time.sleep(300)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
time.sleep(float(sys.argv[2]))
"""

STORM = """
import os, sys, time
while len(os.listdir(sys.argv[1])) < 200:
    if (pid := os.fork()) == 0:
        open(f"{sys.argv[1]}/{os.getpid()}", "w").close()
        if os.getpid() % 2:
            os.setsid()
time.sleep(300)
"""

# A daemon of another time: it starts commands, and is killed before it can end them.
DOOMED = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[4])
from support.processes import Workshop

async def main():
    workshop = Workshop(Path(sys.argv[1]), owner=sys.argv[2])
    run = workshop.running(["sleep", "300"])
    workshop.running(["sh", "-c", "sleep 300 & setsid sleep 300 & wait"])
    workshop.running([sys.executable, "-c", sys.argv[3], sys.argv[1] + "/runaway", "300"])
    (workshop.folder / "leader").write_text(str(run.tree.pid))
    await asyncio.sleep(300)

asyncio.run(main())
"""


def child(argv: list[str]) -> subprocess.Popen[bytes]:
    """Not one of a tree."""
    return subprocess.Popen(argv)


async def pid_in(path: Path) -> int:
    found = ""

    def written() -> str:
        nonlocal found
        found = path.read_text() if path.exists() else ""
        return found

    await eventually(written)
    return int(found)


async def test_a_runaway_that_ignores_sigterm_is_gone(workshop: Workshop) -> None:
    run = workshop.running([sys.executable, "-c", RUNAWAY, f"{workshop.folder}/runaway", "300"])
    runaway = await pid_in(workshop.folder / "runaway")

    ended = await run.end(grace=0.1)

    exited = await workshop.end_of(run)
    assert exited.signal == "SIGKILL"
    assert ended.escaped == (runaway,)
    assert ended.unkillable == ()
    assert everybody_with(f"REDRIVE_STORE={workshop.owner}") == []


async def test_a_runaway_without_our_mark_is_gone_too(workshop: Workshop) -> None:
    run = workshop.running("(env -i setsid sleep 300 & echo $! > pid); sleep 300")
    runaway = await pid_in(workshop.folder / "pid")
    await eventually(lambda: proc.environment(runaway) == {b""})

    await run.end(grace=0)

    assert not is_alive(runaway)


# Two with no mark, no parent, a session of their own, in which the second prints elsewhere.
UNKNOWN = (
    "env -i setsid sh -c '(sleep 300 & echo $! >> pids);"
    " (sleep 300 >/dev/null 2>&1 & echo $! >> pids)'"
)


async def two_orphans_in(path: Path) -> list[int]:
    """They have come to us, and are known to nobody by what they carry."""

    def found() -> list[int]:
        return [int(word) for word in path.read_text().split()] if path.exists() else []

    def is_ours(pid: int) -> bool:
        facts = proc.stat(pid)
        return facts is not None and facts.parent == os.getpid()

    await eventually(lambda: len(found()) == 2 and all(map(is_ours, found())))
    assert not any(b"REDRIVE" in entry for pid in found() for entry in proc.environment(pid))
    return found()


async def test_an_unknown_runaway_goes_with_the_tree_it_prints_for(workshop: Workshop) -> None:
    older = workshop.running(["sleep", "300"])  # might be its tree, too
    (workshop.folder / "other").mkdir()
    other = workshop.running(f"{UNKNOWN}; sleep 300", cwd=str(workshop.folder / "other"))
    others = await two_orphans_in(workshop.folder / "other" / "pids")
    run = workshop.running(f"{UNKNOWN}; sleep 300")
    mine = await two_orphans_in(workshop.folder / "pids")

    ended = await run.end(grace=0)

    assert set(ended.escaped) >= set(mine)
    assert not any(map(is_alive, mine))
    assert workshop.trees.sweep() == []
    assert all(map(is_alive, others))
    await other.end(grace=0)
    assert not any(map(is_alive, others))
    await older.end(grace=0)


async def test_an_unknown_runaway_ends_with_its_command(workshop: Workshop) -> None:
    older = workshop.running(["sleep", "300"])
    run = workshop.running(UNKNOWN)

    exited = await workshop.end_of(run)

    left_behind = [int(word) for word in (workshop.folder / "pids").read_text().split()]
    assert exited.code == 0
    assert set(exited.ended.escaped) >= set(left_behind)
    assert not any(map(is_alive, left_behind))
    await older.end(grace=0)


async def test_what_an_unknown_runaway_prints_to_is_looked_at_once(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[int] = []
    prints_to = proc.prints_to

    def noted(pid: int) -> set[proc.FileId]:
        looked_at.append(pid)
        return prints_to(pid)

    monkeypatch.setattr(proc, "prints_to", noted)
    run = workshop.running(f"{UNKNOWN}; sleep 300")
    runaways = await two_orphans_in(workshop.folder / "pids")
    for _ in range(3):
        assert (await workshop.exit_of(["true"])).ended.killed == ()
        assert workshop.trees.sweep() == []

    assert sorted(looked_at) == sorted(runaways)
    await run.end(grace=0)


async def test_everybody_in_the_group_gets_the_grace(workshop: Workshop) -> None:
    worker = "trap 'sleep 0.2; touch clean; exit' TERM; touch ready; while :; do sleep 0.05; done"
    run = workshop.running(f"({worker}) | cat")
    await eventually(lambda: (workshop.folder / "ready").exists())

    ended = await run.end(grace=10)

    assert (workshop.folder / "clean").exists()
    assert ended.killed == ()


async def test_a_stopped_process_hears_that_it_shall_end(workshop: Workshop) -> None:
    run = workshop.running(
        "trap 'touch heard; exit' TERM; touch ready; while :; do sleep 0.05; done"
    )
    await eventually(lambda: (workshop.folder / "ready").exists())
    os.kill(run.tree.pid, signal.SIGSTOP)

    await run.end(grace=10)

    assert (workshop.folder / "heard").exists()


async def test_ending_one_tree_leaves_the_others_alone(workshop: Workshop) -> None:
    one = workshop.running("setsid sleep 300 & sleep 300")
    other = workshop.running("setsid sleep 300 & sleep 300")
    mark = "REDRIVE_ATTEMPT=" + other.command.name
    await eventually(lambda: len(everybody_with(mark)) == 3)

    await one.end(grace=0)

    assert len(everybody_with(mark)) == 3
    assert everybody_with("REDRIVE_STORE=" + workshop.owner) == everybody_with(mark)


async def test_a_kill_cuts_the_grace_of_a_cancel_short(workshop: Workshop) -> None:
    run = workshop.running("trap '' TERM; touch ready; while :; do sleep 0.05; done")
    await eventually(lambda: (workshop.folder / "ready").exists())
    cancel = asyncio.create_task(run.end(grace=300))
    await run.end(grace=0)
    await cancel
    assert run.is_over


async def test_a_fork_storm_is_ended(workshop: Workshop) -> None:
    (workshop.folder / "born").mkdir()
    run = workshop.running([sys.executable, "-c", STORM, str(workshop.folder / "born")])
    await eventually(lambda: len(os.listdir(workshop.folder / "born")) >= 100)

    ended = await run.end(grace=0)

    assert ended.unkillable == ()
    assert everybody_with(f"REDRIVE_STORE={workshop.owner}") == []


async def test_whoever_outlives_the_command_ends_with_it(workshop: Workshop) -> None:
    run = workshop.running("sleep 300 & echo $! > pid")
    left_behind = await pid_in(workshop.folder / "pid")

    exited = await workshop.end_of(run)

    assert exited.code == 0
    assert exited.ended.killed == (left_behind,)
    assert not is_alive(left_behind)


async def test_whoever_has_left_its_session_ends_with_it_too(workshop: Workshop) -> None:
    runaway = workshop.folder / "runaway"
    run = workshop.running([sys.executable, "-c", RUNAWAY, str(runaway), "0"])
    left_behind = await pid_in(runaway)

    exited = await workshop.end_of(run)

    assert exited.ended.escaped == (left_behind,)
    assert not is_alive(left_behind)


async def test_the_sweep_ends_runaways_of_ended_attempts_only(workshop: Workshop) -> None:
    folder = workshop.folder
    ended = {"REDRIVE_STORE": workshop.owner, "REDRIVE_ATTEMPT": "99.99"}
    script = [sys.executable, "-c", RUNAWAY, f"{folder}/outlived", "0"]
    subprocess.run(script, env=ended, check=True)
    running = workshop.running([sys.executable, "-c", RUNAWAY, f"{folder}/needed", "300"])
    outlived, needed = await pid_in(folder / "outlived"), await pid_in(folder / "needed")

    assert workshop.trees.sweep() == [outlived]

    await eventually(lambda: not is_alive(outlived))
    workshop.trees.sweep()
    assert proc.stat(outlived) is None, "its status has been collected"
    assert is_alive(needed)
    await running.end(grace=0)


async def test_the_exit_status_of_other_children_is_theirs(workshop: Workshop) -> None:
    process = child(["sh", "-c", "exit 7"])
    await eventually(lambda: not is_alive(process.pid))
    workshop.trees.sweep()
    assert process.poll() == 7


async def test_the_leftovers_of_a_killed_daemon_are_ended(workshop: Workshop) -> None:
    support = str(Path(__file__).parents[2])
    doomed = child(
        [sys.executable, "-c", DOOMED, str(workshop.folder), workshop.owner, RUNAWAY, support]
    )
    stranger = child(["sleep", "300"])
    ours = f"REDRIVE_STORE={workshop.owner}"
    await eventually(lambda: len(everybody_with(ours)) == 6)
    leader = Identity.of(await pid_in(workshop.folder / "leader"))
    assert leader is not None
    doomed.kill()
    await eventually(lambda: doomed.poll() is not None)

    ended = await Trees(workshop.owner).end_leftovers(workshop.outputs.folder)

    assert len(ended.killed) == 6
    assert leader.pid in ended.killed
    assert everybody_with(ours) == []
    assert stranger.poll() is None
    stranger.kill()
    await eventually(lambda: stranger.poll() is not None)


async def test_leftovers_of_another_node_are_not_ours(workshop: Workshop) -> None:
    run = workshop.running(["sleep", "300"])
    await Trees("somebody else").end_leftovers(str(workshop.folder / "elsewhere"))
    assert is_alive(run.tree.pid)
    await run.end(grace=0)


async def test_what_cannot_be_killed_is_named(tmp_path: Path, ice: Ice) -> None:
    workshop = Workshop(tmp_path, patience=0.2)
    run = workshop.running(["sleep", "300"])
    ice.freeze(run.tree.pid)
    ended = await run.end(grace=0)
    assert ended.unkillable == (run.tree.pid,)
    assert not run.is_over
    ice.thaw()
    assert (await workshop.end_of(run)).signal == "SIGKILL"


async def test_trees_ended_at_once_share_their_looks_and_none_holds_the_loop(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []
    everybody = proc.everybody

    def noted() -> dict[int, proc.Stat]:
        looks.append(threading.current_thread().name)
        return everybody()

    runs = [workshop.running("setsid sleep 300 & sleep 300") for _ in range(20)]
    await eventually(lambda: len(everybody_with(f"REDRIVE_STORE={workshop.owner}")) == 3 * 20)
    monkeypatch.setattr(proc, "everybody", noted)

    ended = await asyncio.gather(*(run.end(grace=0) for run in runs))

    assert [len(one.killed) for one in ended] == [3] * 20
    assert len(looks) < 3 * 20, "alone, each would need three"
    assert threading.main_thread().name not in looks
