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
    usages: list[Usage] = []

    def is_at_work() -> bool:
        found = sampler.trees([busy.tree.pids(), idle.tree.pids()])
        usages[:] = [usage for usage in found if usage is not None]
        return usages[0].memory > 50_000_000 and usages[0].cpu > 10

    await eventually(is_at_work)
    assert usages[1].memory < 10_000_000
    assert [usage.children for usage in usages] == [1, 0]


async def test_who_has_gone_is_left_out(workshop: Workshop) -> None:
    run = workshop.running(["true"])
    await workshop.end_of(run)
    assert Sampler().trees([run.tree.pids()]) == [None]


def test_the_node_is_seen() -> None:
    usage = Sampler().node()
    assert 0 < usage.memory < psutil.virtual_memory().total
    assert usage.cpu >= 0
