"""Error groups: dead and retrying jobs whose last errors are the same error."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, and_, func, select

from redrive.clock import SECOND
from redrive.fingerprint import signature
from redrive.models import ErrorRecord
from redrive.protocol.rows import GroupRow
from redrived.store.filtering import IS_FAILING
from redrived.store.tables import jobs

HOURS = 24


def groups(
    connection: Connection, where: ColumnElement[bool] | None, now: int, limit: int
) -> list[GroupRow]:
    """The largest groups first."""
    failing = and_(jobs.c.fingerprint.is_not(None), IS_FAILING)
    if where is not None:
        failing = and_(failing, where)
    counted = connection.execute(
        select(
            jobs.c.fingerprint,
            jobs.c.state,
            jobs.c.task,
            jobs.c.queue,
            func.count(),
            func.min(jobs.c.last_attempt_at),
            func.max(jobs.c.last_attempt_at),
            func.max(jobs.c.id),
        )
        .where(failing)
        .group_by(jobs.c.fingerprint, jobs.c.state, jobs.c.task, jobs.c.queue)
    )
    found: dict[str, _Group] = {}
    for fingerprint, state, task, queue, n, first, last, sample in counted:
        group = found.setdefault(fingerprint, _Group())
        group.add(state, task, queue, n, first or 0, last or 0, sample)
    largest = sorted(found.items(), key=lambda item: (-item[1].total, item[0]))[:limit]
    trends = _trends(connection, [fingerprint for fingerprint, _ in largest], now)
    errors = _errors(connection, [group.sample for _, group in largest])
    return [
        group.row(fingerprint, errors.get(group.sample), trends.get(fingerprint, [0] * HOURS))
        for fingerprint, group in largest
    ]


class _Group:
    def __init__(self) -> None:
        self.states: Counter[str] = Counter()
        self.tasks: Counter[str] = Counter()
        self.queues: Counter[str] = Counter()
        self.first = 0
        self.last = 0
        self._samples: dict[str, int] = {}

    @property
    def total(self) -> int:
        return self.states.total()

    @property
    def sample(self) -> int:
        """A dead job where there is one: what to do is said of those that wait for somebody."""
        return self._samples.get("dead") or self._samples["retry"]

    def add(
        self, state: str, task: str, queue: str, n: int, first: int, last: int, sample: int
    ) -> None:
        self.states[state] += n
        self.tasks[task] += n
        self.queues[queue] += n
        self.first = min(self.first or first, first)
        self.last = max(self.last, last)
        self._samples[state] = max(self._samples.get(state, 0), sample)

    def row(self, fingerprint: str, error: ErrorRecord | None, trend: list[int]) -> GroupRow:
        return GroupRow(
            fingerprint=fingerprint,
            error_type=error.error_type if error else "unknown",
            category=error.category if error else "unknown",
            signature=signature(error.message) if error else "",
            dead=self.states["dead"],
            retrying=self.states["retry"],
            first_at=self.first,
            last_at=self.last,
            tasks=dict(self.tasks),
            queues=dict(self.queues),
            sample=self.sample,
            user_message=error.user_message if error else "",
            guidance=error.guidance if error else "",
            trend=trend,
        )


def _trends(connection: Connection, fingerprints: list[str], now: int) -> dict[str, list[int]]:
    """How many failed in each of the last 24 hours."""
    hour = 3600 * SECOND
    ago: Any = (now - jobs.c.last_attempt_at) // hour
    rows = connection.execute(
        select(jobs.c.fingerprint, ago.label("ago"), func.count())
        .where(
            jobs.c.fingerprint.in_(fingerprints),
            IS_FAILING,
            jobs.c.last_attempt_at > now - HOURS * hour,
        )
        .group_by(jobs.c.fingerprint, ago)
    )
    trends: dict[str, list[int]] = {}
    for fingerprint, hours, n in rows:
        trend = trends.setdefault(fingerprint, [0] * HOURS)
        trend[HOURS - 1 - min(HOURS - 1, int(hours))] += n
    return trends


def _errors(connection: Connection, ids: list[int]) -> dict[int, ErrorRecord]:
    rows = connection.execute(select(jobs.c.id, jobs.c.error).where(jobs.c.id.in_(ids)))
    return {id: msgspec.json.decode(error, type=ErrorRecord) for id, error in rows if error}
