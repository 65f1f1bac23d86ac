import os
import signal
from pathlib import Path

import pytest

from redrived.worker.page import ENDINGS, why_in_words, why_of
from support.workers import Workshop, let_pass

ROUNDS = 300


@pytest.mark.parametrize(
    ("task", "exception"), [("sleep", "Cancelled"), ("sleep_later", "CancelledError")]
)
async def test_a_cancel_is_an_exception_in_the_handler_even_in_a_system_call(
    shop: Workshop, tmp_path: Path, task: str, exception: str
) -> None:
    began, ended = tmp_path / "began", tmp_path / "ended"
    job = shop.give(task, began=str(began), ended=str(ended))
    await shop.ear.until(began.exists)

    shop.worker.cancel(job, job + 1000)

    assert (await shop.ear.report_of(job)).outcome == "cancelled"
    assert ended.read_text() == exception
    assert await shop.result("echo", next="fine") == {"next": "fine"}


def test_why_it_is_ended_is_only_told_to_the_attempt_it_is_meant_for() -> None:
    why = why_of("timeout")
    assert why_in_words(7, ended=7, why=why) == ENDINGS["timeout"]
    for lease, nonsense in ((8, why), (7, 1 << 60), (7, why_of("kill"))):
        assert why_in_words(lease, ended=7, why=nonsense) == "the attempt is being ended"


async def test_a_worker_whose_import_was_broken_off_runs_nothing_more(
    shop: Workshop, tmp_path: Path
) -> None:
    began, go = tmp_path / "began", tmp_path / "go"
    spoilt = shop.worker
    job = shop.give("import_slowly", path=str(began), until=str(go))
    await shop.ear.until(began.exists)
    behind = shop.job("echo")
    spoilt.hand([behind], None)
    spoilt.cancel(job, job + 1000)
    assert (await shop.ear.report_of(job)).outcome == "cancelled"
    await shop.ear.until(spoilt.gone.is_set)
    assert behind.id not in shop.ear.reports

    go.touch()
    await shop.ear.until(lambda: len(shop.ear.ready_workers) == 2)
    assert await shop.result("import_slowly", path=str(began), until=str(go)) == 7
    assert shop.pool.trouble == ""


@pytest.mark.parametrize("task", ["spin", "spin_later"])
async def test_a_cancel_never_hits_the_next_job(shop: Workshop, task: str) -> None:
    """However late it comes: before, in, just behind or long after the job it is meant for."""
    ear = shop.ear
    cancelled = done = 0
    for round in range(ROUNDS):
        jobs = [shop.job(task, milliseconds=0.4) for _ in range(4)]
        victim, *bystanders = [job.id for job in jobs]
        shop.worker.hand(jobs, 1e-6)
        let_pass(1.2e-3 * round / ROUNDS)
        shop.worker.cancel(victim, victim + 1000)

        await ear.until(lambda: {*ear.reports, *ear.returned_jobs} >= {victim, *bystanders})  # noqa: B023
        assert not [id for id in bystanders if id in ear.reports and ear.reports[id].failure]
        if victim in ear.reports:
            cancelled += ear.reports[victim].outcome == "cancelled"
            done += ear.reports[victim].outcome == "done"
    assert cancelled
    assert done


async def test_a_cancel_with_an_old_lease_does_nothing(shop: Workshop, tmp_path: Path) -> None:
    began, go = tmp_path / "began", tmp_path / "go"
    job = shop.give("touch_and_wait", path=str(began), until=str(go))
    await shop.ear.until(began.exists)

    shop.worker.cancel(job, 999)
    shop.worker.take_back()
    await shop.ear.until(lambda: shop.ear.returned)  # so the cancel has been heard
    go.touch()

    assert (await shop.ear.report_of(job)).outcome == "done"


async def test_a_job_that_has_not_begun_is_given_back_instead(
    shop: Workshop, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    shop.give("wait_for", path=str(go))
    waiting = [shop.job("echo"), shop.job("echo")]
    shop.worker.hand(waiting, 1e-6, begun=True)

    shop.worker.cancel(waiting[0].id, waiting[0].lease)
    await shop.ear.until(lambda: waiting[0].id in shop.ear.returned_jobs)
    go.touch()

    assert (await shop.ear.report_of(1)).outcome == "done"


async def test_a_handler_that_will_not_go_is_ended_with_its_worker(
    shop: Workshop, tmp_path: Path
) -> None:
    began = tmp_path / "began"
    job = shop.give("refuse_to_go", began=str(began))
    await shop.ear.until(began.exists)

    shop.worker.cancel(job, job + 1000)
    await shop.worker.end(grace=0.05)

    await shop.ear.until(lambda: shop.ear.losses)
    loss = shop.ear.losses[0]
    assert loss.code == -9
    assert loss.begun is not None
    assert loss.begun[:2] == (job, job + 1000)


@pytest.mark.parametrize("how", ["SIG_IGN", "SIG_DFL"])
@pytest.mark.parametrize("by", ["a cancel", "SIGTERM"])
async def test_a_handler_that_takes_the_signals_keeps_them_from_no_other(
    shop: Workshop, tmp_path: Path, how: str, by: str
) -> None:
    began, ended = tmp_path / "began", tmp_path / "ended"
    assert (await shop.run("take_the_signals", how=how)).outcome == "done"
    job = shop.give("sleep", began=str(began), ended=str(ended))
    await shop.ear.until(began.exists)

    if by == "a cancel":
        shop.worker.cancel(job, job + 1000)
    else:
        os.kill(shop.worker.process.pid, signal.SIGTERM)

    assert (await shop.ear.report_of(job)).outcome == "cancelled"
    assert ended.read_text() == "Cancelled"
