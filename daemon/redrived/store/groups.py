"""Error groups: dead and retrying jobs whose last errors are the same error.

The same jobs can be told by what else they have in common: a task, a queue, a node, a day.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import BigInteger, ColumnElement, Connection, and_, func, literal_column, select

from redrive.clock import SECOND
from redrive.filters.matching import day_of
from redrive.fingerprint import signature
from redrive.models import ErrorRecord
from redrive.protocol.rows import GroupRow
from redrived.store.tables import jobs

HOURS = 24
_IS_FAILING = jobs.c.state.in_(["dead", "retry"])


Key = str | int  # a fingerprint, the name of a task, queue or node, the number of a day


def groups(
    connection: Connection,
    where: ColumnElement[bool] | None,
    now: int,
    limit: int,
    by: str = "error",
) -> list[GroupRow]:
    """The largest groups first."""
    key = _KEYS[by]
    failing = and_(jobs.c.fingerprint.is_not(None), key.is_not(None), _IS_FAILING)
    if where is not None:
        failing = and_(failing, where)
    counted = connection.execute(
        select(
            key.label("key"),
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
        .group_by("key", jobs.c.fingerprint, jobs.c.state, jobs.c.task, jobs.c.queue)
    )
    found: dict[Key, _Group] = {}
    for key_of, fingerprint, state, task, queue, n, first, last, newest in counted:
        group = found.setdefault(key_of, _Group())
        group.add(_Counted(fingerprint, state, task, queue, n, first, last, newest))
    largest = sorted(found.items(), key=lambda item: (-item[1].total, item[0]))[:limit]
    trends = _trends(connection, key, [key_of for key_of, _ in largest], now)
    errors = _errors(connection, [group.sample for _, group in largest])
    return [
        group.row(
            "" if by == "error" else _name(key_of),
            errors.get(group.sample),
            trends.get(key_of, [0] * HOURS),
        )
        for key_of, group in largest
    ]


_DAY = 86_400 * SECOND
_KEYS: Mapping[str, ColumnElement[Any]] = MappingProxyType(
    {
        "error": jobs.c.fingerprint,
        "task": jobs.c.task,
        "queue": jobs.c.queue,
        "node": jobs.c.node,
        "day": jobs.c.finished_at // literal_column(str(_DAY), BigInteger),
    }
)


def _name(key: Key) -> str:
    return day_of(key * _DAY) if isinstance(key, int) else key


class _Counted(NamedTuple):
    """Jobs that have all of it in common."""

    fingerprint: str
    state: str
    task: str
    queue: str
    n: int
    first: int | None
    last: int | None
    newest: int


class _Group:
    def __init__(self) -> None:
        self.states: Counter[str] = Counter()
        self.tasks: Counter[str] = Counter()
        self.queues: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self.first = 0
        self.last = 0
        self._samples: dict[tuple[str, str], int] = {}

    @property
    def total(self) -> int:
        return self.states.total()

    @property
    def main(self) -> str:
        """The error that most of them have."""
        return max(self.errors, key=lambda error: (self.errors[error], error))

    @property
    def sample(self) -> int:
        """A dead job where there is one: what to do is said of those that wait for somebody."""
        samples = self._samples
        return samples.get((self.main, "dead")) or samples[self.main, "retry"]

    def add(self, counted: _Counted) -> None:
        first, last = counted.first or 0, counted.last or 0
        self.states[counted.state] += counted.n
        self.tasks[counted.task] += counted.n
        self.queues[counted.queue] += counted.n
        self.errors[counted.fingerprint] += counted.n
        self.first = min(self.first or first, first)
        self.last = max(self.last, last)
        place = (counted.fingerprint, counted.state)
        self._samples[place] = max(self._samples.get(place, 0), counted.newest)

    def row(self, name: str, error: ErrorRecord | None, trend: list[int]) -> GroupRow:
        return GroupRow(
            fingerprint=self.main,
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
            name=name,
            errors=len(self.errors),
        )


def _trends(
    connection: Connection, key: ColumnElement[Any], keys: list[Key], now: int
) -> dict[Key, list[int]]:
    """How many failed in each of the last 24 hours."""
    hour = 3600 * SECOND
    ago: Any = (now - jobs.c.last_attempt_at) // hour
    rows = connection.execute(
        select(key.label("key"), ago.label("ago"), func.count())
        .where(
            key.in_(keys),
            jobs.c.fingerprint.is_not(None),
            _IS_FAILING,
            jobs.c.last_attempt_at > now - HOURS * hour,
        )
        .group_by("key", "ago")
    )
    trends: dict[Key, list[int]] = {}
    for key_of, hours, n in rows:
        trend = trends.setdefault(key_of, [0] * HOURS)
        trend[HOURS - 1 - min(HOURS - 1, int(hours))] += n
    return trends


def _errors(connection: Connection, ids: list[int]) -> dict[int, ErrorRecord]:
    rows = connection.execute(select(jobs.c.id, jobs.c.error).where(jobs.c.id.in_(ids)))
    return {id: msgspec.json.decode(error, type=ErrorRecord) for id, error in rows if error}
