"""A million rows by their pages, and a job found again after the list has moved."""

from __future__ import annotations

from msgspec.structs import replace

from redrive.models import Job
from redrive.protocol.queries import JobPage
from redrive_tui.job_list import JobList
from redrive_tui.job_pages import KEPT, PAGE, JobPages
from support import incident
from support.recorded import Recorded


def page(number: int, total: int | None, rows: int = PAGE) -> JobPage:
    start = number * PAGE
    jobs = [Job(id=start + place, task="t", queue="q") for place in range(rows)]
    return JobPage(jobs=jobs, after=None, as_of=7, total=total)


def test_a_row_is_known_once_its_page_is_here() -> None:
    pages = JobPages()
    pages.put(3, page(3, 1_000_000))

    assert pages.total == 1_000_000
    assert pages.row(3 * PAGE + 5) == Job(id=3 * PAGE + 5, task="t", queue="q")
    assert pages.row(0) is None
    assert pages.place_of(3 * PAGE + 5) == 3 * PAGE + 5


def test_what_is_missing_is_what_is_in_view_and_one_page_ahead() -> None:
    pages = JobPages()
    pages.put(0, page(0, 1_000_000))

    assert pages.missing(0, 40) == [1]
    assert pages.missing(PAGE - 10, PAGE + 30) == [1, 2]
    assert pages.missing(999_990, 1_000_000) == [999_990 // PAGE]


def test_the_page_least_recently_seen_is_forgotten() -> None:
    pages = JobPages()
    for number in range(KEPT + 1):
        pages.put(number, page(number, 1_000_000))
        pages.missing(0, 1)  # the first page stays in view, and the second is next to it

    assert pages.row(PAGE) is not None
    assert pages.row(2 * PAGE) is None


def test_a_list_that_was_not_counted_reaches_as_far_as_it_was_read() -> None:
    pages = JobPages()
    pages.put(1, page(1, None, rows=30))

    assert (pages.total, pages.exact) == (PAGE + 30, False)


def source(number: int) -> Recorded:
    recorded = incident.source()
    recorded.jobs = [Job(id=id, task="t", queue="mail") for id in range(1, number + 1)]
    return recorded


async def test_a_page_of_jobs_of_which_a_message_holds_few_is_put_together() -> None:
    recorded = source(500)
    recorded.at_once = 30
    whole = await JobList().page(recorded, 1)

    assert [job.id for job in whole.jobs] == list(range(300, 100, -1))
    assert whole.total == 500
    last = await JobList().page(recorded, 2)
    assert [job.id for job in last.jobs] == list(range(100, 0, -1))


async def test_a_job_pushed_out_of_view_by_newer_ones_is_found_again() -> None:
    recorded = source(500)
    anchor = 450
    newer = [Job(id=id, task="t", queue="mail") for id in range(501, 1501)]
    recorded.jobs += newer

    pages = await JobList().around(recorded, [0], anchor)

    assert [any(job.id == anchor for job in each.jobs) for each in pages.values()] == [True]
    assert list(pages) == [(1500 - anchor) // PAGE]


async def test_a_job_that_no_longer_matches_is_not_looked_for_elsewhere() -> None:
    recorded = source(500)
    recorded.jobs = [replace(job, queue="other") if job.id == 490 else job for job in recorded.jobs]

    pages = await JobList(where="queue:mail").around(recorded, [0], 490)

    assert list(pages) == [0]


async def test_the_other_jobs_of_a_list_can_be_counted() -> None:
    assert await JobList(where="queue:mail").count(source(50), "id:1,2,900") == 2
