"""What becomes of a job after an attempt: every rule about retries and dead letters."""

from __future__ import annotations

from typing import Any

import pytest

from redrive.clock import SECOND
from redrive.config.sections import Backoff, Retry
from redrive.config.spoken import OF_A_FAILURE
from redrive.deciding.facts import Facts, Failed, Snoozed, Succeeded
from redrive.deciding.verdict import decide
from redrive.lifecycle import JobState, Reason
from redrive.policy import NO_RETRY, RetryPolicy, resolve
from redrive.rules import Evidence, Rulebook, Said

NOW = 1_800_000_000 * SECOND
RULES = Rulebook()
STEADY = resolve(Retry(backoff=Backoff(first=5, factor=2, cap=600), jitter=0))


def failed(**evidence: Any) -> Failed:
    found = Evidence(**evidence)
    return Failed(classification=RULES.classify(found), evidence=found)


UNAVAILABLE = failed(status=503, message="busy", task="sync")
REFUSED = failed(status=404)
ODD = failed(message="how odd")
LOST = failed(kind="lost")


def facts(ended: Any = UNAVAILABLE, /, **other: Any) -> Facts:
    return Facts(
        **{
            "ended": ended,
            "now": NOW,
            "roll": 0.5,
            "leased_from": JobState.QUEUED,
            "life_started_at": NOW - 60 * SECOND,
            "attempts": 1,
            "max_attempts": 3,
            "policy": STEADY,
        }
        | other
    )


def policy(**written: Any) -> RetryPolicy:
    return resolve(Retry(jitter=0, **written))


def because(of: Facts) -> str:
    decision = decide(of).decision
    assert decision is not None
    return decision.because


def reason(of: Facts) -> Reason | None:
    return decide(of).reason


def test_a_success_is_done() -> None:
    assert decide(facts(Succeeded())).state is JobState.DONE


def test_a_failure_with_attempts_left_waits_for_its_retry() -> None:
    verdict = decide(facts(attempts=2))

    assert verdict.state is JobState.RETRY
    assert verdict.delay == 10
    assert verdict.available_at == NOW + 10 * SECOND
    assert not verdict.refund


def test_three_attempts_give_the_verified_trace() -> None:
    states = [decide(facts(attempts=attempt)).state for attempt in (1, 2, 3)]

    assert states == [JobState.RETRY, JobState.RETRY, JobState.DEAD]
    assert reason(facts(attempts=3)) is Reason.EXHAUSTED


def test_the_decision_says_what_happened_and_what_follows() -> None:
    decision = decide(facts(attempts=2)).decision

    assert decision is not None
    assert decision.because == (
        "attempt 2 of 3 failed with HTTP 503 (service_unavailable, transient): next in 10 s"
    )
    assert (decision.retry, decision.delay, decision.rule) == (True, 10, "http 503")
    assert decision.saw == {
        "attempt": 2,
        "max_attempts": 3,
        "category": "transient",
        "error_type": "service_unavailable",
        "status_code": 503,
    }


@pytest.mark.parametrize(
    ("ended", "words"),
    [
        (failed(exit_code=75), "failed with exit 75 (transient_error, transient)"),
        (failed(signal="SIGTERM"), "was ended by SIGTERM (killed, transient)"),
        (
            failed(signal="SIGKILL", oom=True),
            "was ended by SIGKILL (out of memory) (out_of_memory, transient)",
        ),
        (failed(exception=("shop.Odd", "Exception")), "failed with Odd (unknown)"),
        (failed(message="timed out"), "failed (timeout, transient)"),
        (LOST, "was lost (lost, transient)"),
        (failed(kind="stalled"), "stalled (stalled, transient)"),
        (failed(kind="timeout"), "ran out of time (timeout, transient)"),
    ],
)
def test_every_kind_of_failure_has_its_words(ended: Failed, words: str) -> None:
    assert because(facts(ended)) == f"attempt 1 of 3 {words}: next in 5 s"


def test_a_permanent_error_is_dead_at_once_and_named_as_such() -> None:
    verdict = decide(facts(REFUSED))

    assert (verdict.state, verdict.reason) == (JobState.DEAD, Reason.PERMANENT)
    assert verdict.available_at is None
    assert because(facts(REFUSED)) == (
        "attempt 1 of 3 failed with HTTP 404 (not_found, permanent): "
        "not retried, the error is permanent"
    )


def test_a_permanent_error_on_the_last_attempt_is_still_permanent() -> None:
    assert reason(facts(REFUSED, attempts=3)) is Reason.PERMANENT


def test_without_a_policy_the_first_failure_is_the_last() -> None:
    once = {"policy": NO_RETRY, "max_attempts": 1}

    assert reason(facts(UNAVAILABLE, **once)) is Reason.EXHAUSTED
    assert reason(facts(ODD, **once)) is Reason.EXHAUSTED
    assert reason(facts(REFUSED, **once)) is Reason.PERMANENT


def test_a_snooze_does_not_use_up_an_attempt() -> None:
    until = NOW + 900 * SECOND
    verdict = decide(facts(Snoozed(until), leased_from=JobState.RETRY, attempts=3))

    assert (verdict.state, verdict.available_at) == (JobState.RETRY, until)
    assert (verdict.refund, verdict.snoozes, verdict.lost) == (True, 1, 0)
    assert because(facts(Snoozed(until))) == "attempt 1 of 3 asked to wait: next in 15 min"


@pytest.mark.parametrize("until", [NOW - 5 * SECOND, NOW, NOW + 1, NOW + SECOND])
def test_a_snooze_lasts_a_second_at_least(until: int) -> None:
    verdict = decide(facts(Snoozed(until)))

    assert (verdict.available_at, verdict.delay) == (NOW + SECOND, 1.0)
    assert because(facts(Snoozed(until))) == "attempt 1 of 3 asked to wait: next in 1 s"


def test_a_lost_attempt_counts_in_both_budgets() -> None:
    verdict = decide(facts(LOST, attempts=1))

    assert (verdict.state, verdict.lost, verdict.refund) == (JobState.RETRY, 1, False)


@pytest.mark.parametrize(
    ("attempts", "lost", "expected"),
    [
        (1, 0, None),
        (2, 1, None),
        (3, 1, Reason.EXHAUSTED),
        (3, 2, Reason.POISON),  # both budgets end together
        (2, 2, Reason.POISON),
    ],
)
def test_a_job_that_keeps_losing_its_worker_is_poison(
    attempts: int, lost: int, expected: Reason | None
) -> None:
    assert reason(facts(LOST, attempts=attempts, lost=lost)) is expected


@pytest.mark.parametrize(
    ("lost", "words"),
    [(2, "it was lost too often, 3 times"), (0, "it was lost, and max_lost allows no second time")],
)
def test_poison_is_told_in_words(lost: int, words: str) -> None:
    verdict = decide(facts(LOST, attempts=1, lost=lost, max_lost=lost + 1))
    assert verdict.decision is not None
    assert verdict.decision.because.endswith(words)


def test_other_failures_do_not_use_up_the_lost_budget() -> None:
    verdict = decide(facts(UNAVAILABLE, lost=2))

    assert (verdict.state, verdict.lost) == (JobState.RETRY, 0)


def test_on_lost_decides_about_lost_attempts_only() -> None:
    assert reason(facts(LOST, on_lost="fail")) is Reason.ON_LOST
    assert decide(facts(LOST, on_lost="fail")).lost == 1
    assert reason(facts(UNAVAILABLE, on_lost="fail")) is None
    assert not decide(facts(UNAVAILABLE, on_lost="hold")).held


def test_on_lost_hold_leaves_the_retry_to_a_person() -> None:
    verdict = decide(facts(LOST, on_lost="hold"))

    assert (verdict.state, verdict.held) == (JobState.RETRY, True)
    assert because(facts(LOST, on_lost="hold")).endswith("next in 5 s, once released")


def test_on_lost_hold_does_not_hold_what_has_no_attempt_left() -> None:
    verdict = decide(facts(LOST, on_lost="hold", attempts=3))

    assert (verdict.state, verdict.held) == (JobState.DEAD, False)


@pytest.mark.parametrize(
    ("unknown", "earlier", "expected"),
    [
        ("retry", 0, None),
        ("retry", 5, None),
        ("once", 0, None),
        ("once", 1, Reason.UNKNOWN),
        ("dead", 0, Reason.UNKNOWN),
    ],
)
def test_an_unknown_error_is_retried_as_often_as_the_policy_says(
    unknown: str, earlier: int, expected: Reason | None
) -> None:
    of = facts(ODD, policy=policy(unknown=unknown), unknown=earlier)

    assert reason(of) is expected


def test_every_name_that_a_condition_may_speak_of_is_there() -> None:
    for name in OF_A_FAILURE:
        assert reason(facts(policy=policy(stop_when=f"{name} is defined"))) == Reason.STOP_WHEN, (
            name
        )


def test_known_errors_do_not_care_how_unknown_ones_are_retried() -> None:
    assert reason(facts(UNAVAILABLE, policy=policy(unknown="dead"))) is None


@pytest.mark.parametrize(
    ("conditions", "ended", "expected"),
    [
        ({"retry_when": "status_code >= 500"}, UNAVAILABLE, None),
        ({"retry_when": "status_code >= 500"}, REFUSED, Reason.RETRY_WHEN),
        ({"retry_when": "status_code == 404"}, REFUSED, None),
        ({"stop_when": "status_code == 503"}, UNAVAILABLE, Reason.STOP_WHEN),
        ({"stop_when": "false"}, REFUSED, Reason.PERMANENT),
        ({"stop_when": "false"}, UNAVAILABLE, None),
        ({"stop_when": "true", "retry_when": "true"}, UNAVAILABLE, Reason.STOP_WHEN),
        ({"stop_when": "false", "retry_when": "false"}, UNAVAILABLE, Reason.RETRY_WHEN),
        ({"stop_when": "false", "retry_when": "true"}, REFUSED, None),
        ({"unknown": "dead", "retry_when": "'odd' in error"}, ODD, None),
    ],
)
def test_conditions_override_the_classification(
    conditions: dict[str, str], ended: Failed, expected: Reason | None
) -> None:
    assert reason(facts(ended, policy=policy(**conditions))) is expected


def test_max_attempts_and_retry_for_override_conditions() -> None:
    eager = policy(retry_when="true", retry_for=60)

    assert reason(facts(policy=eager, attempts=3)) is Reason.EXHAUSTED
    assert reason(facts(policy=eager)) is Reason.EXPIRED
    assert reason(facts(policy=eager, life_started_at=NOW - 55 * SECOND)) is None


def test_no_attempt_begins_later_than_retry_for_after_the_first() -> None:
    short = policy(delays=[2], retry_for=1)
    assert reason(facts(policy=short, life_started_at=NOW)) is Reason.EXPIRED
    assert because(facts(policy=short, life_started_at=NOW)).endswith(
        ": not retried, the next in 2 s would be later than retry_for of 1 s allows"
    )
    busy = failed(status=503, retry_after=30, task="sync")
    patient = policy(delays=[2], retry_for=29)
    assert reason(facts(busy, policy=patient, life_started_at=NOW)) is Reason.EXPIRED
    assert reason(facts(policy=patient, life_started_at=NOW)) is None


def test_the_decision_names_the_condition_and_what_it_saw() -> None:
    of = facts(
        policy=policy(retry_when="args.kind == 'big' and status_code > 500"),
        known={"args": {"kind": "big"}},
    )
    decision = decide(of).decision

    assert decision is not None
    assert decision.rule == "retry_when args.kind == 'big' and status_code > 500"
    assert decision.saw["args"] == "{'kind': 'big'}"
    assert decision.saw["retry_when"] is True
    assert decision.because.endswith("next in 5 s, retry_when is true")


@pytest.mark.parametrize("name", ["stop_when", "retry_when"])
def test_a_condition_that_fails_is_told_and_leaves_the_word_to_the_classification(
    name: str,
) -> None:
    broken = policy(**{name: "exit_code > 3"})

    verdict = decide(facts(UNAVAILABLE, policy=broken))
    (error,) = verdict.condition_errors
    assert error.startswith(f'{name}: the condition "exit_code > 3" failed: ')
    assert verdict.state is JobState.RETRY
    assert verdict.decision is not None
    assert verdict.decision.saw[name] is None
    assert reason(facts(REFUSED, policy=broken)) is Reason.PERMANENT


def test_a_failing_stop_when_does_not_silence_retry_when() -> None:
    of = facts(UNAVAILABLE, policy=policy(stop_when="nothing", retry_when="false"))

    assert reason(of) is Reason.RETRY_WHEN
    assert len(decide(of).condition_errors) == 1


@pytest.mark.parametrize(
    "name",
    [
        "error",
        "error_type",
        "category",
        "exception",
        "status_code",
        "exit_code",
        "signal",
        "retry_after",
        "result",
        "data",
        "attempt",
        "max_attempts",
        "lost",
        "task",
        "stage",
        "args",
        "run",
    ],
)
def test_every_fact_is_there_for_conditions_even_when_it_is_nothing(name: str) -> None:
    verdict = decide(facts(ODD, policy=policy(stop_when=f"{name} is not defined")))

    assert verdict.state is JobState.RETRY
    assert not verdict.condition_errors


def test_conditions_see_what_the_engine_knows_besides() -> None:
    known = {"result": {"rows": 0}, "run": {"id": "r7"}, "error": "not this one"}
    stop = policy(stop_when="result.rows == 0 and run.id == 'r7' and error == 'how odd'")

    assert reason(facts(ODD, policy=stop, known=known)) is Reason.STOP_WHEN


def test_retry_after_is_a_floor_for_the_delay() -> None:
    assert decide(facts(failed(status=429, retry_after=30.0))).delay == 30
    assert decide(facts(failed(status=429, retry_after=1.0))).delay == 5
    assert because(facts(failed(status=429, retry_after=30.0))).endswith(
        "next in 30 s, Retry-After asks for 30 s"
    )


def test_a_handler_may_ask_for_a_floor_too() -> None:
    said = Said(category="transient", retry_after=90.0)

    assert decide(facts(failed(said=said))).delay == 90


def test_a_retry_after_beyond_the_cap_is_cut_and_shown() -> None:
    of = facts(failed(status=503, retry_after=7200.0))

    assert decide(of).delay == 3600
    assert because(of).endswith(
        "next in 60 min, Retry-After asks for 2 h and 60 min is the most it gets"
    )


def test_a_stalled_attempt_goes_the_way_of_any_failure() -> None:
    stalled = failed(kind="stalled")

    assert decide(facts(stalled)).state is JobState.RETRY
    assert reason(facts(stalled, attempts=3)) is Reason.EXHAUSTED
    assert reason(facts(stalled, on_lost="fail", lost=9)) is None
