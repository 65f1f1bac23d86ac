"""Jobs in hand that never began go back free of charge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import compress
from typing import NamedTuple

from redrive.lifecycle import JobState
from redrived.store.asked import asked_of, obey
from redrived.store.fence import in_time
from redrived.store.keys import free_keys
from redrived.store.unit import Unit


class GivenBack(NamedTuple):
    """A job in hand that never began."""

    job: int
    lease: int
    queue: str
    task: str
    leased_from: str
    limit_key: str | None = None


def give_back(unit: Unit, batches: Sequence[Sequence[GivenBack]]) -> list[int]:
    """They were never executed, so nothing is logged; what was to be cancelled meanwhile is."""
    offered = [job for batch in batches for job in batch]
    valid = in_time(unit, offered, unbegun=True)
    jobs = list(compress(offered, valid))
    source = unit.database.rows("job bigint")
    rows = [(job.job,) for job in jobs]
    asked = asked_of(unit, [job.job for job in jobs])
    unit.over(
        rows,
        "UPDATE jobs SET state = leased_from, waits = 'ready', attempts = attempts - 1,"
        " executions = executions - 1, ending = NULL, ending_by = NULL,"
        " ending_reason = NULL,"
        f" started_at = NULL, heartbeat_at = NULL FROM {source} WHERE jobs.id = r.job",
    )
    for (queue, task, state), n in Counter((j.queue, j.task, j.leased_from) for j in jobs).items():
        unit.moved(queue, task, JobState.LEASED, state, n)
        unit.made_ready()
    free_keys(unit, [job.limit_key for job in jobs if job.limit_key is not None])
    obey(unit, asked)
    answers = iter(valid)
    return [sum(next(answers) for _ in batch) for batch in batches]
