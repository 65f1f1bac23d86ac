"""A pool of workers: how many there are, how they go, who is blamed, what is left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from redrive.config.sections import Pool as PoolSettings
from redrived.processes import wire
from redrived.processes.identity import Identity
from redrived.processes.pool_worker import Worker
from support.workers import APP, Ear, Workshop, tasks_of_the_app, workshop


async def test_the_first_work_brings_more_workers_up_to_the_limit(tmp_path: Path) -> None:
    go = tmp_path / "go"
    async with workshop(tmp_path, processes=3) as shop:
        pool, ear = shop.pool, shop.ear
        assert len(pool.workers) == 1

        for n in range(1, 4):
            await ear.until(lambda: [worker for worker in pool.workers if worker.share])
            worker = next(worker for worker in pool.workers if worker.share)
            worker.hand([shop.job("wait_for", path=str(go))], None, begun=True)
            assert pool.busy == n

        assert len(pool.workers) == 3
        go.touch()
        await ear.until(lambda: len(ear.reports) == 3)
        assert len(pool.workers) == 3


@pytest.mark.parametrize(("task", "code"), [("exit_hard", 7), ("segfault", -signal.SIGSEGV)])
async def test_a_job_that_takes_its_worker_down_is_the_one_that_is_blamed(
    tmp_path: Path, task: str, code: int
) -> None:
    async with workshop(tmp_path) as shop:
        ear = shop.ear
        first, *behind = [shop.job("noop") for _ in range(4)]
        killer = shop.job(task, **({"code": 7} if task == "exit_hard" else {}))
        hand = [first, killer, *behind]
        while not ear.losses:  # on a busy machine the killer may be given back
            ear.returned_jobs.clear()
            shop.worker.hand(hand, 1e-6)
            await ear.until(lambda: ear.losses or killer.id in ear.returned_jobs)
        loss = ear.losses[0]
        assert loss.code == code
        assert loss.begun is not None
        assert loss.begun[:2] == (killer.id, killer.lease)
        unstarted = {job for job, _ in loss.unstarted}
        assert unstarted - {first.id} == {job.id for job in behind}

        await shop.ear.until(lambda: len(shop.ear.ready_workers) == 2)
        assert await shop.result("echo", a=1) == {"a": 1}


async def test_a_killed_worker_is_seen_at_once_and_its_children_go_with_it(
    tmp_path: Path,
) -> None:
    async with workshop(tmp_path) as shop:
        shop.give("start_a_child", pid_file=str(tmp_path / "pid"))
        await shop.ear.until((tmp_path / "pid").exists)
        child = Identity.of(int((tmp_path / "pid").read_text()))
        assert child is not None

        os.kill(shop.worker.process.pid, signal.SIGKILL)
        await shop.ear.until(lambda: shop.ear.losses)

        assert shop.ear.losses[0].code == -9
        assert not child.is_alive()


async def a_child(folder: Path, shop: Workshop) -> Identity:
    await shop.ear.until((folder / "pid").exists)
    child = Identity.of(int((folder / "pid").read_text()))
    assert child is not None
    return child


async def test_a_cancelled_job_has_ended_once_all_that_it_started_is_gone(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        first = shop.worker
        job = shop.give("leave_a_child_and_sleep", pid_file=str(tmp_path / "pid"))
        child = await a_child(tmp_path, shop)
        first.cancel(job, job + 1000, grace=0.1)

        assert (await shop.ear.report_of(job)).outcome == "cancelled"
        assert not child.is_alive()
        assert first.gone.is_set()
        assert shop.ear.losses == []
        await shop.ear.until(lambda: len(shop.ear.ready_workers) == 2)


@pytest.mark.parametrize("task", ["go_on_in_a_thread", "go_on_in_a_lent_thread", "go_on_in_a_task"])
async def test_nothing_of_a_cancelled_job_goes_on_in_its_worker(tmp_path: Path, task: str) -> None:
    sign = tmp_path / "at work"
    async with workshop(tmp_path) as shop:
        first = shop.worker
        job = shop.give(task, path=str(sign))
        await shop.ear.until(sign.exists)
        first.cancel(job, job + 1000, grace=0.1)

        assert (await shop.ear.report_of(job)).outcome == "cancelled"
        assert first.gone.is_set()
        await shop.ear.until(lambda: len(shop.ear.ready_workers) == 2)


async def test_a_worker_in_which_nothing_goes_on_outlives_a_cancel(tmp_path: Path) -> None:
    sign = tmp_path / "at work"
    async with workshop(tmp_path) as shop:
        assert (await shop.run("echo_later")).outcome == "done"
        job = shop.give("tell_a_task_to_end", path=str(sign))
        await shop.ear.until(sign.exists)
        shop.worker.cancel(job, job + 1000, grace=20)

        assert (await shop.ear.report_of(job)).outcome == "cancelled"
        assert (await shop.run("noop")).outcome == "done"
        assert len(shop.ear.ready_workers) == 1


async def test_a_worker_that_is_ended_speaks_once_all_that_it_started_is_gone(
    tmp_path: Path,
) -> None:
    async with workshop(tmp_path) as shop:
        job = shop.give("leave_a_child_and_sleep", pid_file=str(tmp_path / "pid"))
        child = await a_child(tmp_path, shop)
        ending = asyncio.create_task(shop.worker.end(grace=20))

        assert (await shop.ear.report_of(job)).outcome == "cancelled"
        assert not child.is_alive()
        await ending
        assert shop.ear.losses == []


async def test_what_a_job_leaves_behind_lives_as_long_as_its_worker(tmp_path: Path) -> None:
    async with workshop(tmp_path) as shop:
        assert (await shop.run("leave_a_child", pid_file=str(tmp_path / "pid"))).outcome == "done"
        child = await a_child(tmp_path, shop)
        assert (await shop.run("noop")).outcome == "done"
        assert child.is_alive()

        shop.worker.retire()
        await shop.ear.until(lambda: not child.is_alive())


async def test_sigterm_interrupts_the_handler_and_then_the_worker_leaves(
    tmp_path: Path,
) -> None:
    began, ended = tmp_path / "began", tmp_path / "ended"
    async with workshop(tmp_path) as shop:
        worker = shop.worker
        job = shop.give("sleep", began=str(began), ended=str(ended))
        await shop.ear.until(began.exists)

        await worker.end(grace=20)

        assert (await shop.ear.report_of(job)).outcome == "cancelled"
        assert ended.read_text() == "Cancelled"
        await worker.gone.wait()


async def test_a_worker_is_replaced_after_so_many_jobs(tmp_path: Path) -> None:
    async with workshop(tmp_path, recycle_after=2) as shop:
        first = shop.worker
        assert (await shop.run("noop")).outcome == "done"
        assert (await shop.run("noop")).outcome == "done"

        await shop.ear.until(lambda: len(shop.ear.ready_workers) == 2)
        assert first.gone.is_set()
        assert shop.worker is not first
        assert shop.ear.losses == []


async def test_a_worker_that_is_gone_holds_no_descriptor(tmp_path: Path) -> None:
    async with workshop(tmp_path, recycle_after=1) as shop:
        gone = [shop.worker]
        assert (await shop.run("noop")).outcome == "done"
        await shop.ear.until(lambda: len(shop.ear.ready_workers) == 2)
        before = len(os.listdir("/proc/self/fd"))

        gone.append(shop.worker)
        assert (await shop.run("noop")).outcome == "done"
        await shop.ear.until(lambda: len(shop.ear.ready_workers) == 3)
        assert all(worker.gone.is_set() for worker in gone)
        assert len(os.listdir("/proc/self/fd")) == before


async def test_a_worker_that_has_grown_too_large_is_replaced(tmp_path: Path) -> None:
    async with workshop(tmp_path, recycle_memory=1) as shop:
        first = shop.worker
        assert (await shop.run("noop")).outcome == "done"

        await shop.ear.until(lambda: shop.worker is not first)
        assert shop.ear.losses == []


async def test_workers_that_die_before_they_do_anything_come_back_more_slowly(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "dies.py").write_text("print('cannot go on')\nimport os; os._exit(3)\n")
    settings = {"path": [str(tmp_path)], "preload": ["dies"]}
    async with workshop(tmp_path, wait=False, **settings) as shop:
        await shop.ear.until(lambda: len(caplog.records) == 2)

        assert "it exited with 3" in shop.pool.trouble
        assert shop.pool.advice.startswith("python and preload:")
        assert "again in 1 s" in caplog.messages[0]
        assert "again in 2 s" in caplog.messages[1]


async def test_a_preload_that_fails_is_told_and_its_workers_still_run_other_tasks(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with workshop(tmp_path, preload=["unimportable", "app_handlers"]) as shop:
        assert "preload of unimportable failed" in caplog.text
        assert shop.pool.trouble == ""
        failed = "preload of unimportable failed: "
        assert shop.pool.preload_failed.startswith(failed)
        assert len(shop.pool.preload_failed) > len(failed) + 10
        assert await shop.result("echo", a=1) == {"a": 1}

        shop.pool.use(PoolSettings(path=[str(APP)], preload=["app_handlers"]))
        await shop.ear.until(lambda: len(shop.ear.ready_workers) == 2)
        assert shop.pool.preload_failed == ""


async def test_stopping_lets_the_running_job_end_and_gives_the_others_back(
    tmp_path: Path,
) -> None:
    began, go = tmp_path / "began", tmp_path / "go"
    async with workshop(tmp_path) as shop:
        running = shop.give("touch_and_wait", path=str(began), until=str(go))
        await shop.ear.until(began.exists)
        waiting = shop.job("noop")
        shop.worker.hand([waiting], 1e-6)

        stopping = asyncio.create_task(shop.pool.stop(grace=20))
        await shop.ear.until(lambda: shop.ear.returned_jobs == [waiting.id])
        go.touch()
        await stopping

        assert (await shop.ear.report_of(running)).outcome == "done"
        assert shop.pool.workers == []
        assert shop.ear.losses == []


async def test_stopping_ends_a_worker_that_a_thread_of_the_application_holds(
    tmp_path: Path,
) -> None:
    async with workshop(tmp_path) as shop:
        await shop.run("leave_a_thread")
        await shop.pool.stop(grace=0.05)

        assert shop.pool.workers == []


async def test_the_workers_of_a_pool_without_tasks_go_home_and_come_back_with_them(
    tmp_path: Path,
) -> None:
    go = tmp_path / "go"
    async with workshop(tmp_path) as shop:
        running = shop.give("wait_for", path=str(go))
        shop.pool.define({})
        go.touch()
        assert (await shop.ear.report_of(running)).outcome == "done"
        await shop.ear.until(lambda: not shop.pool.workers)

        shop.pool.define(tasks_of_the_app())
        await shop.ear.until(lambda: len(shop.ear.ready_workers) == 2)
        assert await shop.result("echo", a=1) == {"a": 1}
        assert shop.pool.trouble == ""


DAEMON = """
import asyncio, sys
from pathlib import Path
from support.workers import workshop

async def main(folder):
    async with workshop(folder) as shop:
        (folder / "pid").write_text(str(shop.worker.process.pid))
        jobs = [shop.job("sleep", began=str(folder / "began"), ended=str(folder / "ended"))]
        jobs += [shop.job("touch_file", path=str(folder / "too late")) for _ in range(5)]
        shop.worker.hand(jobs, 1e-6, begun=True)
        await asyncio.Event().wait()

asyncio.run(main(Path(sys.argv[1])))
"""


async def test_a_worker_whose_daemon_is_gone_starts_nothing_more_and_goes_too(
    tmp_path: Path,
) -> None:
    path = os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])
    nobody = Ear()
    daemon = await asyncio.create_subprocess_exec(
        sys.executable, "-c", DAEMON, str(tmp_path), env={**os.environ, "PYTHONPATH": path}
    )
    try:
        await nobody.until((tmp_path / "began").exists)
        worker = Identity.of(int((tmp_path / "pid").read_text()))
        assert worker is not None
    finally:
        daemon.kill()
        await daemon.wait()

    await nobody.until(lambda: not worker.is_alive())
    assert (tmp_path / "ended").read_text() == "Cancelled"
    assert not (tmp_path / "too late").exists()


async def test_a_word_that_nobody_can_deal_with_hides_neither_the_next_nor_the_exit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with workshop(tmp_path) as shop:
        stumbled: list[list[wire.Report]] = []

        def stumble(worker: Worker, reports: list[wire.Report]) -> None:
            stumbled.append(reports)
            raise ValueError("what is this?")

        with monkeypatch.context() as patched:
            patched.setattr(shop.ear, "reported", stumble)
            first = shop.worker
            shop.give("noop")
            await shop.ear.until(lambda: stumbled)
        assert (await shop.run("noop")).outcome == "done"
        first.retire()
        await first.gone.wait()


async def test_what_an_earlier_daemon_has_left_of_a_pool_goes_and_nothing_of_another(
    tmp_path: Path,
) -> None:
    live = tmp_path / "outputs" / "live"
    live.mkdir(parents=True)
    for name in ("test.7", "test.large.1", "tests.1"):
        (live / name).write_text("printed")
    async with workshop(tmp_path) as shop:
        assert (await shop.run("noop")).outcome == "done"
        assert {"test.large.1", "tests.1"} < set(os.listdir(live))
        assert not (live / "test.7").exists()


async def test_an_interpreter_that_is_not_there_is_what_doctor_advises_to_look_at(
    tmp_path: Path,
) -> None:
    async with workshop(tmp_path, wait=False, python="/no/such/python") as shop:
        assert "/no/such/python" in shop.pool.trouble
        assert shop.pool.advice == "python must name an interpreter that starts"
