"""What was asked of an attempt, as it stands in the row (`ending`), and would be gone with it.

An attempt may have ended by itself before it could be ended for that; and the reason that was
given is nowhere else, so that it outlives the daemon and is known where another node runs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from redrived.store.actions import Act, act
from redrived.store.unit import Unit

# What a job that waits again is given instead.
_THEN = {"cancel": "cancel", "kill": "kill", "restart": "run-now"}

# The events of attempts that were ended because of it.
ASKED_FOR = frozenset({"job_cancelled", "job_killed", "job_restarted"})


class Asked(NamedTuple):
    job: int
    verb: str
    by: str
    reason: str | None


def asked_of(unit: Unit, jobs: Sequence[int]) -> list[Asked]:
    """To be looked at before the end is written."""
    if not jobs:
        return []
    source = unit.database.rows("job bigint")
    found = unit.over(
        [(job,) for job in jobs],
        f"SELECT jobs.id, jobs.ending, jobs.ending_by, jobs.ending_reason"
        f" FROM {source} JOIN jobs ON jobs.id = r.job"
        " WHERE jobs.ending IN ('cancel', 'kill', 'restart')",
    )
    return [Asked(job, _THEN[ending], by or "", reason) for job, ending, by, reason in found]


def reasons_of(unit: Unit, jobs: Sequence[int]) -> dict[int, str]:
    """Why attempts were to be ended, where that was said; to be looked at before, too."""
    if not jobs:
        return {}
    found = unit.over(
        [(job,) for job in jobs],
        f"SELECT jobs.id, jobs.ending_reason FROM {unit.database.rows('job bigint')}"
        " JOIN jobs ON jobs.id = r.job WHERE jobs.ending_reason IS NOT NULL",
    )
    return {job: str(reason) for job, reason in found}


def obey(unit: Unit, asked: Sequence[Asked]) -> None:
    """To be done once the end is written."""
    for each in asked:
        data = {} if each.reason is None else {"reason": each.reason}
        act(unit, [Act(verb=each.verb, jobs=[each.job], by=each.by, data=data)])
