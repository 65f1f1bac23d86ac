"""Attempts end: every write here names job and lease, and a stale lease changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from typing import Any, NamedTuple

from msgspec import Struct

from redrive.lifecycle import JobState
from redrived.store.asked import ASKED_FOR, asked_of, obey, reasons_of
from redrived.store.begin import started_event
from redrived.store.fence import IS_CURRENT, confirm, note_late, presumed_in_time
from redrived.store.keys import free_keys
from redrived.store.log import EventRow
from redrived.store.progress import Settled, settled
from redrived.store.tables import HELD
from redrived.store.turns import apart
from redrived.store.unit import Unit


class Completed(NamedTuple):
    """An attempt that succeeded."""

    job: int
    lease: int
    began_at: int | None  # None: its begin is in the store already
    ended_at: int
    attempt: int
    queue: str
    task: str
    run_id: int | None = None
    limit_key: str | None = None
    result: str | None = None  # JSON
    metrics: str | None = None  # JSON
    data: str | None = None  # JSON, for the event


class Ended(Struct, frozen=True, kw_only=True):
    """An attempt that did not succeed, with what was decided about the job."""

    job: int
    lease: int
    attempt: int
    queue: str
    task: str
    state: JobState
    ended_at: int
    began_at: int | None = None  # None: its begin is in the store already
    available_at: int | None = None
    held: bool = False
    reason: str | None = None
    refund: bool = False  # the attempt is given back
    lost: int = 0
    unknown: int = 0
    interruptions: int = 0
    snoozes: int = 0
    run_id: int | None = None
    limit_key: str | None = None
    error: str | None = None  # JSON
    error_type: str | None = None
    fingerprint: str | None = None
    metrics: str | None = None  # JSON
    events: Sequence[tuple[str, dict[str, Any]]] = ()  # type, data; the last has the new state


def _moves_others(job: Completed | Ended) -> bool:
    """The steps of its run, or jobs behind its key."""
    return job.run_id is not None or job.limit_key is not None


@apart(unless=lambda batch: any(map(_moves_others, batch)))
def complete(unit: Unit, batches: Sequence[Sequence[Completed]]) -> list[set[int]]:
    """Mark attempts done; answers with the jobs of each batch whose lease was no longer theirs."""
    reported = [job for batch in batches for job in batch]
    valid = presumed_in_time(unit, reported)
    note_late(unit, [(job, "done") for job, ok in zip(reported, valid, strict=True) if not ok])
    done = list(compress(reported, valid))
    if done:
        _write_done(unit, done)
    answers = iter(valid)
    return [{job.job for job in batch if not next(answers)} for batch in batches]


def _write_done(unit: Unit, done: Sequence[Completed]) -> None:
    # Thousands at once are common: column by column there is little to do for each of them.
    (job, lease, began, ended, attempt, queue, task, run, key, result, metrics, data) = zip(
        *done, strict=True
    )
    changed = unit.each_of(
        (job, lease, began, ended, result, metrics),
        _DONE_COLUMNS,
        _DONE,
    )
    confirm(unit, changed, len(done))
    events: list[EventRow] = []
    for id, began_at, ended_at, n, of, said in zip(
        job, began, ended, attempt, run, data, strict=True
    ):
        if began_at is not None:
            events.append(started_event(unit.node, began_at, id, of, n))
        events.append((ended_at, "action_completed", id, of, n, "done", n, said))
    unit.emit_all(events)
    for lane, n in Counter(zip(queue, task, strict=True)).items():
        unit.moved(*lane, JobState.LEASED, JobState.DONE, n)
    free_keys(unit, [each for each in key if each is not None])
    settled(
        unit,
        [
            Settled(one.run_id, one.job, JobState.DONE, one.ended_at, one.result, one.metrics)
            for one in done
            if one.run_id is not None
        ],
    )


_DONE = (
    "UPDATE jobs SET state = 'done', finished_at = r.ended_at,"
    " started_at = coalesce(r.began_at, started_at),"
    " last_attempt_at = coalesce(r.began_at, last_attempt_at), result = r.result,"
    " metrics = r.metrics, error = NULL, error_type = NULL, fingerprint = NULL, reason = NULL,"
    " ending = NULL, ending_by = NULL, ending_reason = NULL"
    f" FROM {{rows}} WHERE {IS_CURRENT}"
)
_DONE_COLUMNS = (
    "job bigint",
    "lease bigint",
    "began_at bigint",
    "ended_at bigint",
    "result",
    "metrics",
)


@apart(unless=_moves_others)
def end(unit: Unit, items: Sequence[Ended]) -> list[bool]:
    """Write down what became of attempts that did not succeed; False where the lease was stale."""
    valid = presumed_in_time(unit, items)
    late = [item for item, ok in zip(items, valid, strict=True) if not ok]
    note_late(unit, [(item, item.error_type or item.state) for item in late])
    current = list(compress(items, valid))
    asked = asked_of(unit, [item.job for item in current if _goes_on(item)])
    reasons = reasons_of(unit, [item.job for item in current if _is_asked_for(item)])
    if current:
        _write_ends(unit, current)
    for item in current:
        _emit_end(unit, item, reasons.get(item.job))
        unit.moved(item.queue, item.task, JobState.LEASED, item.state)
    free_keys(unit, [item.limit_key for item in current if item.limit_key is not None])
    settled(unit, list(_of_runs(current)))
    obey(unit, asked)
    return valid


def _goes_on(item: Ended) -> bool:
    """Whether it is to run again, and not because somebody asked for that."""
    is_restarted = any(kind == "job_restarted" for kind, _ in item.events)
    return item.state in (JobState.QUEUED, JobState.RETRY) and not is_restarted


def _is_asked_for(item: Ended) -> bool:
    return bool(item.events) and item.events[-1][0] in ASKED_FOR


def _of_runs(items: Iterable[Ended]) -> Iterator[Settled]:
    """What the runs must know: not of attempts that were given back."""
    for item in items:
        over = item.state in (JobState.DEAD, JobState.CANCELLED, JobState.RETRY)
        if item.run_id is not None and over and not item.refund:
            yield Settled(
                item.run_id,
                item.job,
                item.state,
                item.ended_at,
                metrics=item.metrics,
                reason=item.reason,
            )


def _write_ends(unit: Unit, items: Sequence[Ended]) -> None:
    changed = unit.each(
        [
            (
                item.job,
                item.lease,
                item.state,
                _waits(unit, item),
                item.available_at,
                item.ended_at if item.state in (JobState.DEAD, JobState.CANCELLED) else None,
                item.began_at,
                item.reason,
                int(item.refund),
                item.lost,
                item.unknown,
                item.interruptions,
                item.snoozes,
                item.error,
                item.error_type,
                item.fingerprint,
                item.metrics,
            )
            for item in items
        ],
        _END_COLUMNS,
        "UPDATE jobs SET state = r.state, waits = r.waits, reason = r.reason,"
        " ending = NULL, ending_by = NULL, ending_reason = NULL,"
        " available_at = coalesce(r.available_at, jobs.available_at),"
        " finished_at = r.finished_at, started_at = coalesce(r.began_at, jobs.started_at),"
        " last_attempt_at = coalesce(r.began_at, jobs.last_attempt_at),"
        " attempts = attempts - r.refund, lost = jobs.lost + r.lost,"
        " unknowns = unknowns + r.unknown,"
        " interruptions = jobs.interruptions + r.interruptions,"
        " snoozes = jobs.snoozes + r.snoozes, error = coalesce(r.error, jobs.error),"
        " error_type = coalesce(r.error_type, jobs.error_type),"
        " fingerprint = coalesce(r.fingerprint, jobs.fingerprint),"
        f" metrics = coalesce(r.metrics, jobs.metrics) FROM {{rows}} WHERE {IS_CURRENT}",
    )
    confirm(unit, changed, len(items))


_END_COLUMNS = (
    "job bigint",
    "lease bigint",
    "state",
    "waits",
    "available_at bigint",
    "finished_at bigint",
    "began_at bigint",
    "reason",
    "refund int",
    "lost int",
    "unknown int",
    "interruptions int",
    "snoozes int",
    "error",
    "error_type",
    "fingerprint",
    "metrics",
)


def _waits(unit: Unit, item: Ended) -> str | None:
    if item.state not in (JobState.QUEUED, JobState.RETRY):
        return None
    if item.held:
        waits = HELD
    else:
        waits = unit.waits(unit.now if item.available_at is None else item.available_at)
    unit.waiting(item.queue, item.task, item.state, waits)
    return waits


def _emit_end(unit: Unit, item: Ended, reason: str | None) -> None:
    if item.began_at is not None:
        started = started_event(unit.node, item.began_at, item.job, item.run_id, item.attempt)
        unit.emit_all([started])
    for kind, data in item.events[:-1]:
        _emit(unit, item, kind, data, item.ended_at, JobState.LEASED, item.attempt)
    if item.events:
        kind, data = item.events[-1]
        if reason is not None:
            data = {**data, "reason": reason}
        attempts = item.attempt - item.refund
        _emit(unit, item, kind, data, item.ended_at, item.state, attempts)


def _emit(
    unit: Unit,
    item: Ended,
    kind: str,
    data: dict[str, Any],
    at: int,
    state: JobState,
    attempts: int,
) -> None:
    unit.emit(
        kind,
        at=at,
        job=item.job,
        run=item.run_id,
        attempt=item.attempt,
        state=state,
        attempts=attempts,
        data=data,
    )
