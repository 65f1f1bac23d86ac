"""What ends while the daemon can open nothing more is over all the same."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.processes import PATIENCE, Workshop, eventually, is_alive
from support.workers import workshop as workshop_of_workers

LEAVES_A_CHILD = "setsid sleep 300 & echo $! > child; mv child left; read _ < go"


@contextmanager
def nothing_can_be_opened() -> Iterator[None]:
    """No number is low enough for a new descriptor, not even one that was given back."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("is_asked_to", [True, False], ids=["asked to", "by itself"])
async def test_a_command_that_ends_then_takes_its_children_along(
    workshop: Workshop, is_asked_to: bool, caplog: pytest.LogCaptureFixture
) -> None:
    os.mkfifo(workshop.folder / "go")
    go = os.open(workshop.folder / "go", os.O_RDWR)
    run = workshop.running(LEAVES_A_CHILD)
    await eventually((workshop.folder / "left").exists)
    child = int((workshop.folder / "left").read_text())
    with nothing_can_be_opened():
        if is_asked_to:
            ending = asyncio.create_task(run.end(grace=0))
        else:
            os.write(go, b"\n")
        await eventually(lambda: "nobody can be looked for" in caplog.text)
    async with asyncio.timeout(PATIENCE):
        await workshop.end_of(run)
        if is_asked_to:
            await ending
    assert not is_alive(child)
    os.close(go)


async def test_a_worker_that_exits_then_is_replaced(tmp_path: Path) -> None:
    async with workshop_of_workers(tmp_path) as shop:
        shop.give("start_a_child", pid_file=str(tmp_path / "pid"))
        await shop.ear.until((tmp_path / "pid").exists)
        child = int((tmp_path / "pid").read_text())
        with nothing_can_be_opened():
            os.kill(shop.worker.process.pid, signal.SIGKILL)
            await shop.ear.until(lambda: shop.worker.process.is_being_ended or shop.ear.losses)
        await shop.ear.until(lambda: shop.ear.losses)
        assert not is_alive(child)
        assert (await shop.run("noop")).outcome == "done"
