"""Rehearsals: a task with its policy, in memory, decided by what the daemon decides by."""

from __future__ import annotations

import asyncio
import time
from datetime import date
from typing import Any

import pytest

import redrive
from redrive.config.sections import ErrorRule, Retry
from redrive.errors import UsageProblem
from redrive.testing import rehearse

MINUTES = Retry(delays=[60.0, 180.0, 600.0], jitter=0)


class Flaky:
    """Fails so many times with an error, then answers."""

    def __init__(self, failures: int, error: Exception) -> None:
        self.left = failures
        self.error = error

    def __call__(self, **args: object) -> dict[str, object]:
        if self.left:
            self.left -= 1
            raise self.error
        return {"got": args}


def test_a_task_that_works_is_done_at_once() -> None:
    trial = rehearse(Flaky(0, ValueError()), {"a": 1})
    assert (trial.state, trial.result, len(trial.attempts)) == ("done", {"got": {"a": 1}}, 1)


def test_the_delays_of_the_policy_pass_without_waiting() -> None:
    before = time.monotonic()
    trial = rehearse(Flaky(9, ConnectionError("connection refused")), retry=MINUTES)

    assert time.monotonic() - before < 60
    assert (trial.state, trial.reason) == ("dead", "exhausted")
    assert [attempt.delay for attempt in trial.attempts] == [60, 180, 600, None]
    assert trial.seconds == 840


def test_errors_are_classified_as_the_daemon_would() -> None:
    trial = rehearse(Flaky(1, ValueError("no such column")), retry=3)
    error = trial.attempts[0].error
    assert error is not None
    assert (trial.state, trial.reason, error.category) == ("dead", "permanent", "permanent")
    assert "ValueError: no such column" in (error.traceback or "")


@pytest.mark.parametrize("raised", [RuntimeError(), RuntimeError(" ")])
def test_an_error_without_a_message_is_told_by_its_name(raised: Exception) -> None:
    error = rehearse(Flaky(1, raised)).attempts[0].error
    assert error is not None
    assert (error.message, error.error_type) == ("RuntimeError", "unknown")


def test_rules_of_ones_own_come_first() -> None:
    rule = ErrorRule(match="no such column", type="schema", category="transient")
    trial = rehearse(Flaky(1, ValueError("no such column")), retry=3, errors=[rule])
    assert trial.state == "done"
    assert trial.attempts[0].error is not None
    assert trial.attempts[0].error.error_type == "schema"


@pytest.mark.parametrize(
    ("error", "attempts"),
    [(redrive.Permanent("never"), 1), (redrive.Transient("soon", retry_after=90), 3)],
)
def test_what_a_handler_says_outright_counts(error: Exception, attempts: int) -> None:
    trial = rehearse(Flaky(9, error), retry=3)
    assert len(trial.attempts) == attempts
    if attempts > 1:
        assert trial.attempts[0].delay == 90


def deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("result", [object(), float("nan"), "x" * 70_000, deep(200)])
def test_a_result_that_the_daemon_would_refuse_is_refused(result: object) -> None:
    trial = rehearse(lambda: result, retry=3)
    (only,) = trial.attempts
    assert only.error is not None
    assert (trial.state, trial.result, only.error.error_type) == ("dead", None, "invalid_result")


def test_the_result_is_what_json_makes_of_it() -> None:
    assert rehearse(lambda: {"pair": (1, 2), 3: "three"}).result == {"pair": [1, 2], "3": "three"}


def test_the_arguments_are_what_json_makes_of_them_and_new_each_time() -> None:
    seen: list[object] = []

    def handler(pair: list[int], day: str) -> None:
        seen.append([*pair, day])
        pair.clear()
        raise TimeoutError("timed out")

    rehearse(handler, {"pair": (1, 2), "day": date(2026, 11, 19)}, retry=2)
    assert seen == [[1, 2, "2026-11-19"]] * 2
    with pytest.raises(UsageProblem, match="this cannot be sent"):
        rehearse(handler, {"pair": object()})


async def test_a_rehearsal_of_an_async_handler_fits_into_an_async_test() -> None:
    async def handler() -> int:
        await asyncio.sleep(0)
        return redrive.current_job().attempt

    assert rehearse(handler).result == 1


def test_a_handler_whose_awaiting_is_cancelled_has_failed() -> None:
    async def handler() -> None:
        raise asyncio.CancelledError

    assert rehearse(handler).state == "dead"


def test_a_handler_that_exits_has_failed() -> None:
    def handler() -> None:
        raise SystemExit(3)

    trial = rehearse(handler, retry=2)
    error = trial.attempts[0].error
    assert error is not None
    assert (trial.state, len(trial.attempts), error.message) == ("dead", 2, "sys.exit(3)")


def test_an_unknown_error_is_tried_once_more_where_the_policy_says_once() -> None:
    trial = rehearse(Flaky(9, RuntimeError("hm")), retry=Retry(max_attempts=5, unknown="once"))
    assert (trial.reason, len(trial.attempts)) == ("unknown", 2)


def test_a_snooze_costs_no_attempt_and_once_is_once() -> None:
    def handler() -> int:
        job = redrive.current_job()
        if job.once("slept"):
            raise redrive.Snooze(120)
        return job.attempt

    trial = rehearse(handler, retry=2)
    assert (trial.result, trial.seconds) == (1, 120)
    assert trial.claimed == frozenset({"slept"})


def test_remaining_skips_what_an_earlier_attempt_has_finished() -> None:
    seen: list[int] = []

    def handler() -> None:
        for item in redrive.current_job().remaining([1, 2, 3], key=str):
            seen.append(item)
            if item == 2 and seen.count(2) == 1:
                raise TimeoutError("timed out")

    assert rehearse(handler, retry=2).state == "done"
    assert seen == [1, 2, 2, 3]


def test_async_handlers_progress_and_metrics_are_seen() -> None:
    async def handler(n: int) -> int:
        job = redrive.current_job()
        job.progress(n, 10, "on it")
        job.count("lines", n)
        return n

    trial = rehearse(handler, {"n": 4})
    assert trial.result == 4
    assert list(trial.attempts[0].progress or []) == [4, 10, "on it"]
    assert trial.attempts[0].metrics == {"lines": 4}


def test_a_task_that_snoozes_for_ever_is_told_so() -> None:
    def handler() -> None:
        raise redrive.Snooze(1)

    with pytest.raises(RuntimeError, match="still not done"):
        rehearse(handler)
