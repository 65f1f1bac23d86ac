"""Many orders in one request: one that is refused says which it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from redrive.errors import NotFound, RedriveError, UsageProblem
from redrive.protocol.commands import Enqueue, JobOrder, RunOrder, Start
from redrived.api.enqueue import enqueue_jobs
from redrived.api.runs import start_runs
from support.engine import TESTER, running

CONFIG = """
[tasks.work]
command = ["true"]
[pipelines.p]
steps = [ { name = "a", task = "work" } ]
"""


@pytest.mark.parametrize(
    ("order", "kind"),
    [(JobOrder(queue="nope"), NotFound), (JobOrder(delay=-4), UsageProblem)],
)
async def test_a_job_that_is_refused_is_told_by_its_number(
    tmp_path: Path, order: JobOrder, kind: type[RedriveError]
) -> None:
    async with running(tmp_path, CONFIG) as bench:
        orders = [JobOrder(), JobOrder(), order, JobOrder()]
        with pytest.raises(kind) as refused:
            await enqueue_jobs(bench.engine, TESTER, Enqueue(task="work", orders=orders))
    assert refused.value.order == 2


async def test_a_run_that_is_refused_is_told_by_its_number(tmp_path: Path) -> None:
    async with running(tmp_path, CONFIG) as bench:
        orders = [RunOrder(), RunOrder(key="\x00")]
        with pytest.raises(UsageProblem) as refused:
            await start_runs(bench.engine, TESTER, Start(pipeline="p", orders=orders))
    assert refused.value.order == 1
