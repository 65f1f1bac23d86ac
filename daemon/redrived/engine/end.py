"""The end of an attempt: what there is to know of it, what is said about it, what is stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from redrive.deciding import facts
from redrive.deciding.guidance import once_over
from redrive.deciding.verdict import Verdict
from redrive.fingerprint import fingerprint
from redrive.instants import iso
from redrive.lifecycle import JobState
from redrive.models import ErrorRecord, Json, plain
from redrive.rules import Classification, Evidence
from redrived.engine.attempt import Attempt
from redrived.store.picking import InHand
from redrived.store.settle import Completed, Ended
from redrived.store.unit import to_json


class End(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to know of an attempt that ended, whoever ran it."""

    job: InHand
    began_at: int | None  # None: the store knows it
    ended_at: int
    ended: facts.Ended | None  # None: by somebody's wish, so that there is nothing to decide
    metrics: dict[str, Any] | None = None
    log: bool = False  # it wrote something
    is_too_long: bool = False  # and more than `limits.output`
    first: tuple[str, dict[str, Any]] | None = None  # an event before all others
    known: dict[str, Any] = {}  # for conditions
    left: dict[str, list[int]] = {}  # processes it left behind, that ran away, cannot be killed


def events_of(
    told: End, found: Verdict, error: ErrorRecord | None
) -> list[tuple[str, dict[str, Any]]]:
    """What is said about an end, the new state last."""
    if error is None:  # a snooze
        until = {"until": _iso(found.available_at), "delay": found.delay}
        return [("job_snoozed", until)]
    data: dict[str, Any] = {"error": plain(error), **_evidence(told), **told.left}
    if told.log:
        data["log"] = log_name(told.job)
    if told.metrics:
        data["metrics"] = told.metrics
    events = [told.first] if told.first else []
    events.append(("action_error", data))
    events.extend(("condition_error", {"message": text}) for text in found.condition_errors)
    decision: Json = msgspec.to_builtins(found.decision) if found.decision else None
    if found.state is JobState.DEAD:
        events.append(("step_retry_exhausted", {"reason": found.reason, "decision": decision}))
    else:
        retry = {
            "delay": found.delay,
            "available_at": _iso(found.available_at),
            "decision": decision,
        }
        events.append(("step_retry", retry))
    return events


def error_record(told: End, found: Verdict) -> ErrorRecord:
    assert isinstance(told.ended, facts.Failed)
    kind: Classification = told.ended.classification
    evidence = told.ended.evidence
    is_over = found.state is JobState.DEAD
    return ErrorRecord(
        error_type=kind.error_type,
        category=kind.category,
        message=evidence.in_words,
        user_message=kind.user_message,
        guidance=once_over(kind.guidance) if is_over else kind.guidance,
        stage=told.job.step or told.job.task,
        timestamp=told.ended_at,
        retry_count=told.job.attempt - 1,
        traceback=evidence.traceback,
        fingerprint=fingerprint(kind.error_type, evidence.message, evidence.traceback),
        rule=kind.rule,
    )


def _evidence(told: End) -> dict[str, Any]:
    """What the rules went by besides the message, so that they can be tried on it again."""
    assert isinstance(told.ended, facts.Failed)
    evidence: Evidence = told.ended.evidence
    seen = {
        "exception": list(evidence.exception),
        "exit_code": evidence.exit_code,
        "signal": evidence.signal,
        "oom": evidence.oom,
        "status": evidence.status,
    }
    kept = {name: value for name, value in seen.items() if value}
    return {"evidence": kept} if kept else {}


def _iso(instant: int | None) -> str | None:
    return None if instant is None else iso(instant)


def log_name(job: InHand) -> str:
    return f"{job.id}.{job.execution}"


def ended_row(
    told: End,
    found: Verdict,
    error: ErrorRecord | None,
    events: Sequence[tuple[str, dict[str, Any]]],
) -> Ended:
    """An end as it is stored."""
    job = told.job
    return Ended(
        job=job.id,
        lease=job.lease,
        attempt=job.attempt,
        queue=job.queue,
        task=job.task,
        state=found.state,
        ended_at=told.ended_at,
        began_at=told.began_at,
        available_at=found.available_at,
        held=found.held,
        reason=found.reason,
        refund=found.refund,
        lost=found.lost,
        unknown=int(error is not None and error.category == "unknown"),
        interruptions=found.interruptions,
        snoozes=found.snoozes,
        run_id=job.run_id,
        limit_key=job.limit_key,
        error=to_json(error) if error else None,
        error_type=error.error_type if error else None,
        fingerprint=error.fingerprint if error else None,
        metrics=to_json(told.metrics) if told.metrics else None,
        events=events,
    )


def completed_row(
    attempt: Attempt, ended_at: int, result: dict[str, Any] | None, told: dict[str, Any]
) -> Completed:
    """A success as it is stored."""
    job = attempt.job
    return Completed(
        job.id,
        job.lease,
        attempt.unlogged_begin,
        ended_at,
        job.attempt,
        job.queue,
        job.task,
        job.run_id,
        job.limit_key,
        to_json(result) if result is not None else None,
        attempt.metrics,
        to_json(told) if told else None,
    )
