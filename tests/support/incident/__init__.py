"""A believable afternoon: a database is away, a queue is paused, a node is late."""

from __future__ import annotations

from support.incident.failures import groups, groups_by, redrive
from support.incident.glance import status, vitals, welcome
from support.incident.job_list import detail, events, jobs
from support.incident.run_list import batches, runs, schedules
from support.incident.times import MINUTE, NOW
from support.recorded import Recorded

__all__ = ["MINUTE", "NOW", "detail", "jobs", "redrive", "source", "status", "vitals", "welcome"]


def source(**changes: object) -> Recorded:
    """All of it, ready to be looked at."""
    recorded = Recorded(status(**changes), welcome())
    recorded.jobs = jobs()
    recorded.details = {240: detail()}
    recorded.groups = groups()
    recorded.groups_by = groups_by()
    recorded.runs = runs()
    recorded.batches = batches()
    recorded.schedules = schedules()
    recorded.events = events()
    recorded.log = (
        b"".join(b"12:03:%02d loading template welcome_v%d\n" % (n % 60, n) for n in range(40))
        + b"\x1b[31mERROR\x1b[0m smtp 451 try later\n"
    )
    return recorded
