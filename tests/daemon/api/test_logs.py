"""Reading output: what is said where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from redrive.errors import NotFound
from redrive.protocol.commands import Enqueue, JobOrder
from redrive.protocol.queries import ReadLog
from redrived.api.enqueue import enqueue_jobs
from redrived.api.events import read_log
from support.engine import TESTER
from support.engines import an_engine

CONFIG = '[tasks.work]\ncommand = ["true"]\n'


@pytest.mark.parametrize("attempt", [None, 1])
async def test_the_output_of_a_job_that_never_ran_is_not_found(
    tmp_path: Path, attempt: int | None
) -> None:
    async with an_engine(tmp_path, CONFIG) as engine:
        await enqueue_jobs(engine, TESTER, Enqueue(task="work", orders=[JobOrder(hold=True)]))
        with pytest.raises(NotFound) as refused:
            await read_log(engine, TESTER, ReadLog(id=1, attempt=attempt))
    assert str(refused.value) == "job 1 has not been executed yet; `redrive why 1` says why"
