"""What was asked of an attempt that ended by itself before it could be ended for that.

The wish stands in the row (`ending`), and would be gone with the attempt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from redrived.store.actions import Act, act
from redrived.store.unit import Unit

# What a job that waits again is given instead.
_THEN = {"cancel": "cancel", "kill": "kill", "restart": "run-now"}


class Asked(NamedTuple):
    job: int
    verb: str
    by: str


def asked_of(unit: Unit, jobs: Sequence[int]) -> list[Asked]:
    """To be looked at before the end is written."""
    if not jobs:
        return []
    source = unit.database.rows("job bigint")
    found = unit.over(
        [(job,) for job in jobs],
        f"SELECT jobs.id, jobs.ending, jobs.ending_by FROM {source} JOIN jobs ON jobs.id = r.job"
        " WHERE jobs.ending IN ('cancel', 'kill', 'restart')",
    )
    return [Asked(job, _THEN[ending], by or "") for job, ending, by in found]


def obey(unit: Unit, asked: Sequence[Asked]) -> None:
    """To be done once the end is written."""
    for each in asked:
        act(unit, [Act(verb=each.verb, jobs=[each.job], by=each.by)])
