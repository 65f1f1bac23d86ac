from pathlib import Path

from redrived.processes.pool_worker import HAND
from support.workers import Workshop, let_pass


async def test_jobs_are_run_in_the_order_they_were_handed_over(shop: Workshop) -> None:
    jobs = [shop.job("noop") for _ in range(3000)]
    for start in range(0, 3000, 500):
        shop.worker.hand(jobs[start : start + 500], 1e-6)

    # A busy machine may stop the worker for so long that it gives some back.
    ear = shop.ear
    await ear.until(lambda: len(ear.order) + len(ear.returned_jobs) == 3000)
    assert ear.order
    assert ear.order == sorted(ear.order)


async def test_what_is_behind_a_long_job_goes_back_by_itself(
    shop: Workshop, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    short, long, *behind = [
        shop.job("noop"),
        shop.job("wait_for", path=str(go)),
        shop.job("noop"),
        shop.job("noop"),
    ]
    shop.worker.hand([short, long, *behind], 1e-6)

    await shop.ear.until(lambda: len(shop.ear.returned_jobs) == 2)
    assert (await shop.ear.report_of(short.id)).outcome == "done"
    assert sorted(shop.ear.returned_jobs) == [job.id for job in behind]
    assert shop.ear.begun_jobs == [long.id]
    assert shop.worker.share == 0
    go.touch()
    await shop.ear.report_of(long.id)
    assert shop.worker.share == 1


async def test_a_job_that_counts_as_begun_is_not_announced(shop: Workshop, tmp_path: Path) -> None:
    go = tmp_path / "go"
    long, behind = shop.job("wait_for", path=str(go)), shop.job("noop")
    shop.worker.hand([long, behind], 1e-6, begun=True)

    await shop.ear.until(lambda: shop.ear.returned_jobs == [behind.id])
    go.touch()
    await shop.ear.report_of(long.id)
    assert shop.ear.begun_jobs == []


async def test_what_has_ended_is_told_within_five_milliseconds_of_work(shop: Workshop) -> None:
    """By the thread that works: the other one watches only where the daemon waits for more."""
    ear = shop.ear
    jobs = [shop.job("spin", milliseconds=0.5) for _ in range(200)]
    for job in jobs:
        shop.worker.hand([job], None, begun=True)
    await ear.until(lambda: len(ear.order) == len(jobs))

    for reports in ear.told_at_once:
        assert sum(report.took for report in reports[:-1]) <= 5_000  # microseconds


async def test_every_job_is_either_run_or_given_back_never_both(shop: Workshop) -> None:
    ear = shop.ear
    handed = 0
    for round in range(100):
        jobs = [shop.job("spin", milliseconds=0.01) for _ in range(100)]
        handed += len(jobs)
        shop.worker.hand(jobs, 1e-6)
        let_pass(2e-3 * round / 100)
        shop.worker.take_back()
        await ear.until(lambda: len(ear.order) + len(ear.returned_jobs) >= handed)  # noqa: B023

    assert sorted(ear.order + ear.returned_jobs) == list(range(1, handed + 1))
    assert ear.order
    assert ear.returned_jobs


async def test_taking_back_is_answered_when_there_is_nothing_to_give(shop: Workshop) -> None:
    shop.worker.take_back()

    await shop.ear.until(lambda: shop.ear.returned == [[]])


async def test_a_worker_takes_two_hands_of_half_the_size(shop: Workshop, tmp_path: Path) -> None:
    worker = shop.worker
    assert worker.share == 1.0

    worker.hand([shop.job("noop") for _ in range(2)], HAND / 5)
    assert 0.5 < worker.share < 1.0

    worker.hand([shop.job("noop") for _ in range(2)], HAND / 5)
    assert worker.share == 0.0
