"""The end of an attempt: what there is to know of it, and what is said about it."""

from __future__ import annotations

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
from redrived.store.picking import InHand


class End(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to know of an attempt that ended, whoever ran it."""

    job: InHand
    began_at: int | None  # None: the store knows it
    ended_at: int
    ended: facts.Ended
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
