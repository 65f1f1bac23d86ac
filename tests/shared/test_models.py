"""Records as scripts see them, and the past as the log tells it."""

from __future__ import annotations

from typing import Any

import msgspec

from redrive.history import fold_state, history
from redrive.instants import SECOND, from_iso, iso
from redrive.lifecycle import JobState
from redrive.models import Attempt, ErrorRecord, Event, Job, plain, recorded_error

AT = 1_790_000_000_123_456


def event(kind: str, seq: int = 1, **more: Any) -> Event:
    return Event(seq=seq, at=AT + seq * SECOND, type=kind, job=1, **more)


def test_instants_are_shown_in_utc_with_six_digits() -> None:
    assert iso(AT) == "2026-09-21T14:13:20.123456Z"
    assert iso(0) == "1970-01-01T00:00:00.000000Z"
    assert from_iso(iso(AT)) == AT


def test_a_record_is_plain_json_with_times_as_text_however_deep() -> None:
    error = ErrorRecord(error_type="timeout", category="transient", message="m", timestamp=AT)
    shown = plain(Job(id=1, task="t", queue="q", created_at=AT, error=error))

    assert shown["created_at"] == shown["error"]["timestamp"] == iso(AT)
    assert shown["started_at"] is None
    assert msgspec.json.decode(msgspec.json.encode(shown)) == shown


def test_an_error_in_the_log_reads_back_as_it_was() -> None:
    error = ErrorRecord(error_type="timeout", category="transient", message="m", timestamp=AT)
    assert recorded_error(plain(error)) == error


def test_the_past_counts_executions_over_all_lives() -> None:
    error = ErrorRecord(error_type="timeout", category="transient", message="m", timestamp=AT)
    past = history(
        [
            event("step_started", state="queued", attempts=0),
            event("action_started", 2, attempt=1, data={"node": "n1"}),
            event("action_error", 3, attempt=1, data={"error": plain(error), "log": "1.1"}),
            event("step_retry_exhausted", 4, attempt=1, state="dead", attempts=1),
            event("job_requeued", 5, state="queued", attempts=0),
            event("action_started", 6, attempt=1),
            event("action_completed", 7, attempt=1, state="done", attempts=1),
        ]
    )
    assert [(a.execution, a.life, a.attempt, a.outcome) for a in past] == [
        (1, 1, 1, "failed"),
        (2, 2, 1, "done"),
    ]
    assert (past[0].error, past[0].log, past[0].node) == (error, "1.1", "n1")
    assert past[0].ended_at == AT + 3 * SECOND


def test_a_noticed_stall_is_what_the_attempt_ended_by() -> None:
    [attempt] = history(
        [
            event("action_started", 1, attempt=1),
            event("action_stalled", 2, attempt=1),
            event("action_error", 3, attempt=1),
        ]
    )
    assert isinstance(attempt, Attempt)
    assert (attempt.outcome, attempt.ended_at) == ("stalled", AT + 3 * SECOND)


def test_the_state_is_the_fold_of_the_events() -> None:
    told = [
        event("step_started", state="queued", attempts=0),
        event("action_started", 2, state="leased", attempts=1),
        event("late_result", 3),
        event("step_retry", 4, state="retry", attempts=1),
    ]
    assert fold_state(told) == (JobState.RETRY, 1)
    assert fold_state([]) == (None, 0)
