"""Usage is that of the whole tree, and of nobody else."""

from __future__ import annotations

import sys

import psutil

from redrived.processes.resources import Sampler, Usage
from support.processes import Workshop, eventually

BUSY = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', sys.argv[1]]).wait()"
WORK = "x = bytearray(50_000_000)\nwhile True: pass"


async def test_a_tree_uses_what_its_children_use(workshop: Workshop) -> None:
    sampler = Sampler()
    busy = workshop.running([sys.executable, "-c", BUSY, WORK])
    idle = workshop.running(["sleep", "300"])
    pids = [busy.tree.pid, idle.tree.pid]
    usages: dict[int, Usage] = {}

    def is_at_work() -> bool:
        usages.update(sampler.trees(pids))
        at_work = usages[busy.tree.pid]
        return at_work.memory > 50_000_000 and at_work.cpu > 10

    await eventually(is_at_work)
    assert usages[idle.tree.pid].memory < 10_000_000
    assert [usages[pid].children for pid in pids] == [1, 0]


async def test_who_has_gone_is_left_out(workshop: Workshop) -> None:
    run = workshop.running(["true"])
    await workshop.end_of(run)
    assert Sampler().trees([run.tree.pid]) == {}


def test_the_node_is_seen() -> None:
    usage = Sampler().node()
    assert 0 < usage.memory < psutil.virtual_memory().total
    assert usage.cpu >= 0
