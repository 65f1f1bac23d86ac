"""Handlers that write where nothing of theirs is: they pay for it, and nobody else."""

from __future__ import annotations

from pathlib import Path

import pytest

from redrive.lifecycle import JobState
from support.engine import running
from support.workers import APP, Workshop

TASKS = f"""
[pools.default]
path = ["{APP}"]
[retry.soon]
max_attempts = 2
delays = ["10ms"]
[tasks.spoil_the_page]
python = "app_handlers:spoil_the_page"
retry = "soon"
[tasks.write_to_the_daemon]
python = "app_handlers:write_to_the_daemon"
retry = 1
"""


async def test_nothing_of_the_worker_has_a_number_that_a_handler_may_get(shop: Workshop) -> None:
    await shop.run("print_line", text="it has opened its next file by then")

    assert await shop.result("low_descriptors") == []


async def test_what_a_worker_notes_for_the_daemon_is_written_by_no_descriptor(
    shop: Workshop,
) -> None:
    assert await shop.result("write_to_the_page") == ["Operation not permitted"] * 2


@pytest.mark.parametrize("in_a_hand", [False, True])
async def test_who_spoils_what_says_what_runs_is_lost_all_the_same(
    shop: Workshop, tmp_path: Path, in_a_hand: bool
) -> None:
    jobs = [shop.job("spoil_the_page", path=str(tmp_path / "go"), exits=True)]
    jobs += [shop.job("noop")] * in_a_hand
    shop.worker.hand(jobs, 1e-6, begun=True)
    await shop.ear.until(lambda: shop.ear.losses)

    [loss] = shop.ear.losses
    assert loss.begun is not None
    assert loss.begun[:2] == (jobs[0].id, jobs[0].lease)
    came_back = {job for job, _ in loss.unstarted} | set(shop.ear.returned_jobs)
    assert came_back == {job.id for job in jobs[1:]}
    assert loss.wrote
    assert (shop.outputs / "0" / f"{jobs[0].id}.1.out").read_text() == "spoilt\n"


async def test_who_spoils_it_and_goes_on_is_not_taken_for_one_that_never_began(
    shop: Workshop, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    job = shop.give("spoil_the_page", path=str(go), exits=False)
    await shop.ear.until(lambda: shop.worker.process.begun_last() is None)
    for _ in range(10):
        shop.pool.passed(3600)
    go.touch()

    assert (await shop.ear.report_of(job)).outcome == "done"
    assert (await shop.run("noop")).outcome == "done"
    assert shop.ear.losses == []


async def test_a_job_that_spoils_its_worker_each_time_comes_to_an_end(tmp_path: Path) -> None:
    async with running(tmp_path, TASKS) as bench:
        [id] = await bench.enqueue("spoil_the_page", path=str(tmp_path / "go"), exits=True)
        job = await bench.ended(id)

        assert (job.state, job.attempts) == (JobState.DEAD, 2)
        assert (await bench.told(id))[1:] == [
            *["action_started", "action_lost", "action_error", "step_retry"],
            *["action_started", "action_lost", "action_error", "step_retry_exhausted"],
        ]


async def test_nonsense_from_a_worker_is_told_in_plain_words(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path, TASKS) as bench:
        path = str(tmp_path / "go")
        [id] = await bench.enqueue("write_to_the_daemon", text="hello", path=path)
        job = await bench.ended(id)

        assert (job.state, job.attempts) == (JobState.DEAD, 1)
        assert job.error is not None
        assert job.error.error_type == "lost"
        assert job.error.message == (
            "what the worker sent made no sense: something wrote to its descriptors"
            " (a frame of 1751477360 bytes)"
        )
        assert "worker default.1 is ended: what it sent made no sense" in caplog.text


async def test_nonsense_that_would_swallow_all_that_follows_is_not_waited_for(
    tmp_path: Path,
) -> None:
    (tmp_path / "go").touch()
    async with running(tmp_path, TASKS) as bench:
        beginning_of_32_megabytes = "\2\0\0\0"
        [id] = await bench.enqueue(
            "write_to_the_daemon", text=beginning_of_32_megabytes, path=str(tmp_path / "go")
        )
        job = await bench.ended(id)

        assert job.error is not None
        assert job.error.error_type == "lost"
