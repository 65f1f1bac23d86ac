"""A worker that owes a sign of life is waited for a while, and holds up nobody meanwhile."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from redrived.processes.identity import Identity
from redrived.processes.pool_worker import BEGIN_WITHIN, START_LONG, START_WITHIN
from support.workers import APP, workshop

HANGS_ONCE = """
import os, time
try:
    os.close(os.open(FLAG, os.O_CREAT | os.O_EXCL))
except FileExistsError:
    pass
else:
    print("asking the licence server", flush=True)
    time.sleep(600)
"""


def hanging(folder: Path) -> tuple[Path, dict[str, object]]:
    """The settings of a pool whose first worker hangs in its preload; what says that it does."""
    flag = folder / "hangs"
    (folder / "hangs_once.py").write_text(HANGS_ONCE.replace("FLAG", repr(str(flag))))
    return flag, {"path": [str(folder), str(APP)], "preload": ["hangs_once"]}


async def test_a_worker_that_hangs_in_its_start_keeps_no_other_from_starting(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    flag, settings = hanging(tmp_path)
    async with workshop(tmp_path, wait=False, processes=2, **settings) as shop:
        await shop.ear.until(flag.exists)
        shop.pool.passed(START_LONG)
        assert len(shop.pool.workers) == 1

        shop.pool.passed(0.1)

        assert "worker test.1 has been starting for 10 s" in shop.pool.trouble
        assert shop.pool.trouble in caplog.text
        assert shop.pool.advice.startswith("preload: its modules must not wait")
        await shop.ear.until(lambda: shop.ear.ready_workers)
        assert shop.pool.trouble == ""
        second = shop.ear.ready_workers[0]
        second.hand([shop.job("noop")], None, begun=True)
        await shop.ear.until(lambda: len(shop.ear.reports) == 1)


async def test_a_worker_that_hangs_in_its_start_is_ended_and_the_next_comes_more_slowly(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    flag, settings = hanging(tmp_path)
    async with workshop(tmp_path, wait=False, processes=1, **settings) as shop:
        await shop.ear.until(flag.exists)
        await shop.ear.until(shop.worker.process.output.size)  # it has said why
        hung = Identity.of(shop.worker.process.pid)
        assert hung is not None
        shop.pool.passed(START_WITHIN + 0.1)
        await shop.ear.until(lambda: not shop.pool.workers)

        assert not hung.is_alive()
        assert "it was not ready within 120 s; asking the licence server" in shop.pool.trouble
        assert shop.pool.advice.startswith("preload: its modules must not wait")
        assert "again in 1 s" in caplog.messages[-1]
        await shop.ear.until(lambda: shop.ear.ready_workers)
        assert shop.pool.trouble == ""


async def test_a_worker_that_was_stopped_in_its_start_does_not_hold_up_the_end(
    tmp_path: Path,
) -> None:
    flag, settings = hanging(tmp_path)
    async with workshop(tmp_path, wait=False, **settings) as shop:
        await shop.ear.until(flag.exists)
        async with asyncio.timeout(20):
            await shop.pool.stop(grace=600)

        assert shop.pool.workers == []


async def test_trouble_with_one_start_is_forgotten_while_others_do_the_work(
    tmp_path: Path,
) -> None:
    flag, settings = hanging(tmp_path)
    async with workshop(tmp_path, wait=False, processes=2, **settings) as shop:
        await shop.ear.until(flag.exists)
        shop.pool.passed(START_LONG + 0.1)
        await shop.ear.until(lambda: shop.ear.ready_workers)
        shop.pool.passed(START_WITHIN)
        await shop.ear.until(lambda: len(shop.pool.workers) == 1)

        assert "not every worker stays up" in shop.pool.trouble
        await shop.ear.until(lambda: shop.pool.trouble == "")


async def test_a_worker_that_does_not_begin_what_it_is_handed_is_replaced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with workshop(tmp_path) as shop:
        assert (await shop.run("noop")).outcome == "done"
        deaf = shop.worker
        os.kill(deaf.process.pid, signal.SIGSTOP)
        await shop.ear.until(deaf.process.is_stopped)
        jobs = [shop.job("noop"), shop.job("noop")]
        deaf.hand(jobs, 1e-6, begun=True)
        shop.pool.passed(BEGIN_WITHIN)
        assert not deaf.is_leaving

        shop.pool.passed(0.1)
        assert deaf.is_leaving
        await shop.ear.until(lambda: shop.ear.losses)

        [loss] = shop.ear.losses
        assert (loss.begun, loss.unstarted) == (None, [(job.id, job.lease) for job in jobs])
        assert loss.why == "it did not begin within 10 s what it was handed"
        assert f"worker {deaf.process.name} is ended: {loss.why}" in caplog.text
        await shop.ear.until(lambda: len(shop.ear.ready_workers) == 2)
        assert await shop.result("echo", a=1) == {"a": 1}


async def test_a_worker_that_never_begins_anything_is_replaced_more_slowly(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with workshop(tmp_path) as shop:
        os.kill(shop.worker.process.pid, signal.SIGSTOP)
        await shop.ear.until(shop.worker.process.is_stopped)
        shop.give("noop")
        shop.pool.passed(BEGIN_WITHIN + 0.1)
        await shop.ear.until(lambda: shop.ear.losses)

        assert "it did not begin within 10 s" in shop.pool.trouble
        assert "again in 1 s" in caplog.messages[-1]


async def test_a_worker_whose_last_hand_it_is_is_waited_for_no_longer(tmp_path: Path) -> None:
    async with workshop(tmp_path, recycle_after=1) as shop:
        last = shop.worker
        os.kill(last.process.pid, signal.SIGSTOP)
        await shop.ear.until(last.process.is_stopped)
        job = shop.give("noop")
        assert last.is_leaving
        shop.pool.passed(BEGIN_WITHIN + 0.1)
        await shop.ear.until(lambda: shop.ear.losses)

        [loss] = shop.ear.losses
        assert (loss.begun, loss.unstarted) == (None, [(job, job + 1000)])
        assert loss.why == "it did not begin within 10 s what it was handed"


async def test_a_stopped_worker_that_holds_others_behind_the_one_it_runs_is_replaced(
    tmp_path: Path,
) -> None:
    began = tmp_path / "began"
    async with workshop(tmp_path) as shop:
        running = shop.job("sleep", began=str(began), ended=str(tmp_path / "ended"))
        shop.worker.hand([running], None, begun=True)
        await shop.ear.until(began.exists)
        os.kill(shop.worker.process.pid, signal.SIGSTOP)
        await shop.ear.until(shop.worker.process.is_stopped)
        behind = shop.job("noop")
        shop.worker.hand([behind], 1e-6)
        shop.pool.passed(BEGIN_WITHIN + 0.1)
        await shop.ear.until(lambda: shop.ear.losses)

        [loss] = shop.ear.losses
        assert loss.begun is not None
        assert loss.begun[0] == running.id
        assert loss.unstarted == [(behind.id, behind.lease)]


async def test_a_job_that_runs_long_in_silence_is_left_alone(tmp_path: Path) -> None:
    began, go = tmp_path / "began", tmp_path / "go"
    async with workshop(tmp_path) as shop:
        running = shop.give("touch_and_wait", path=str(began), until=str(go))
        await shop.ear.until(began.exists)
        for _ in range(10):
            shop.pool.passed(3600)
        go.touch()

        assert (await shop.ear.report_of(running)).outcome == "done"
        assert shop.ear.losses == []


async def test_a_begin_that_a_worker_cannot_tell_is_read_from_what_it_shares(
    tmp_path: Path,
) -> None:
    began = tmp_path / "began"
    async with workshop(tmp_path) as shop:
        running = shop.job("hold_the_interpreter", began=str(began))
        shop.worker.hand([running], 1e-6)
        await shop.ear.until(began.exists)
        shop.pool.passed(0.25)
        shop.pool.passed(0.25)

        assert running.id in shop.ear.begun_jobs
