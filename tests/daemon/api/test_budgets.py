"""A budget has a limit, and whoever shows a job tells the limit that holds for it."""

from __future__ import annotations

import json
from pathlib import Path

from redrive.models import Event, Job
from redrive.protocol.queries import ListJobs, ShowJob
from redrive.protocol.rehearsals import Preview
from redrived.api import jobs, previewing
from redrived.store.enqueue import NewJob, Order, enqueue
from support.engine import TESTER
from support.engines import an_engine

CONFIG = """
[retry.manual]
max = 9
[tasks.work]
command = ["true"]
max_lost = 2
[[hooks]]
on = ["job_held"]
command = ["sh", "-c", "cat > seen.json"]
"""


def limits(job: Job) -> tuple[int, int]:
    assert job.budgets is not None
    return job.budgets.max_lost, job.budgets.max_manual_retries


async def test_the_limits_of_a_jobs_budgets_are_those_of_the_config_wherever_it_is_shown(
    tmp_path: Path,
) -> None:
    async with an_engine(tmp_path, CONFIG) as engine:
        order = Order(jobs=[NewJob(task="work", queue="default")])
        await engine.store.submit(enqueue, order)

        shown = (await jobs.show_job(engine, TESTER, ShowJob(id=1))).job
        (listed,) = (await jobs.list_jobs(engine, TESTER, ListJobs())).jobs
        preview = Preview(verb="cancel", ids=[1])
        (sample,) = (await previewing.preview(engine, TESTER, preview)).sample
        (occasion,) = engine.hooks.occasions([Event(seq=1, at=1, type="job_held", job=1)])
        await engine.hooks.tell(occasion)
        told = json.loads((tmp_path / "seen.json").read_bytes())["job"]["budgets"]

        assert [limits(job) for job in (shown, listed, sample)] == [(2, 9)] * 3
        assert (told["max_lost"], told["max_manual_retries"]) == (2, 9)


async def test_a_job_of_a_task_that_is_gone_is_shown_with_the_limits_of_any(
    tmp_path: Path,
) -> None:
    async with an_engine(tmp_path) as engine:
        await engine.store.submit(enqueue, Order(jobs=[NewJob(task="gone", queue="default")]))
        (listed,) = (await jobs.list_jobs(engine, TESTER, ListJobs())).jobs
        assert limits(listed) == (3, 5)
