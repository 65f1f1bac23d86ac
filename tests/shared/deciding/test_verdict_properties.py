"""What holds of every verdict, whatever the facts: no early death, no retry with nothing left."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from redrive.clock import SECOND
from redrive.deciding.facts import Facts, Failed, Snoozed, Succeeded
from redrive.deciding.verdict import decide
from redrive.lifecycle import LEASED, MOVES, JobState, Move, Reason, allowed
from redrive.policy import RetryPolicy
from redrive.rules import Evidence, Rulebook

NOW = 1_800_000_000 * SECOND
RULES = Rulebook()

EVIDENCE = st.builds(
    Evidence,
    message=st.sampled_from(["", "timeout", "file corrupt", "how odd"]),
    kind=st.sampled_from([None, "lost", "stalled", "timeout"]),
    status=st.sampled_from([None, 404, 429, 503]),
    exit_code=st.sampled_from([None, 1, 65, 75]),
    retry_after=st.none() | st.floats(0, 1e6),
)
FAILED = EVIDENCE.map(lambda evidence: Failed(RULES.classify(evidence), evidence))
ENDED = st.one_of(
    FAILED,
    st.integers(NOW - 10**9, NOW + 10**12).map(Snoozed),
    st.just(Succeeded()),
)
CONDITIONS = st.sampled_from([None, "true", "false", "status_code == 503", "status_code > 1"])
POLICIES = st.builds(
    RetryPolicy,
    max_attempts=st.just(3),
    delays=st.lists(st.floats(0, 1e5), max_size=3).map(tuple),
    jitter=st.floats(0, 1),
    retry_when=CONDITIONS,
    stop_when=CONDITIONS,
    unknown=st.sampled_from(["retry", "once", "dead"]),
    retry_for=st.none() | st.floats(0, 1e5),
)


def everything(ended: st.SearchStrategy[Any]) -> st.SearchStrategy[Facts]:
    return st.builds(
        Facts,
        ended=ended,
        now=st.just(NOW),
        roll=st.floats(0, 1, exclude_max=True),
        leased_from=st.sampled_from([JobState.QUEUED, JobState.RETRY]),
        life_started_at=st.integers(NOW - 10**12, NOW),
        attempts=st.integers(1, 6),
        max_attempts=st.integers(1, 6),
        lost=st.integers(0, 4),
        max_lost=st.integers(1, 4),
        unknown=st.integers(0, 2),
        policy=POLICIES,
        on_lost=st.sampled_from(["retry", "fail", "hold"]),
    )


@given(of=everything(ENDED))
def test_every_verdict_is_a_legal_move_that_says_why(of: Facts) -> None:
    verdict = decide(of)

    assert any(verdict.state in ends for starts, ends in MOVES.values() if LEASED in starts)
    assert (verdict.reason is not None) == (verdict.state is JobState.DEAD)
    assert not verdict.held or allowed(Move.RELEASE, verdict.state)
    if isinstance(of.ended, Failed):
        assert verdict.decision is not None
        assert verdict.decision.rule
        assert verdict.decision.retry == (verdict.state is JobState.RETRY)


@given(of=everything(FAILED), more=st.integers(0, 9))
def test_a_job_never_waits_for_a_retry_when_nothing_is_left(of: Facts, more: int) -> None:
    assert decide(replace(of, attempts=of.max_attempts + more)).state is JobState.DEAD


@given(of=everything(ENDED))
def test_a_job_never_dies_early(of: Facts) -> None:
    of = replace(of, max_attempts=of.attempts + 1)

    assert isinstance(of.ended, Failed) or decide(of).reason is None
    match decide(of).reason, of.ended:
        case Reason.PERMANENT, Failed(found, _):
            assert found.category == "permanent"
        case Reason.UNKNOWN, Failed(found, _):
            assert found.category == "unknown"
            assert of.policy.unknown == "dead" or of.unknown > 0
        case Reason.POISON, _:
            assert of.lost + 1 >= of.max_lost
        case Reason.EXPIRED, _:
            assert of.policy.retry_for is not None
            assert decide(replace(of, policy=replace(of.policy, retry_for=None))).reason is None
        case Reason.STOP_WHEN, _:
            assert of.policy.stop_when is not None
        case Reason.RETRY_WHEN, _:
            assert of.policy.retry_when is not None
        case Reason.ON_LOST, _:
            assert of.on_lost == "fail"
        case why, _:
            assert why is None  # exhausted, above all, is not among the reasons


@given(of=everything(FAILED))
def test_a_delay_stays_between_what_the_policy_and_retry_after_ask_for(of: Facts) -> None:
    verdict = decide(of)

    if verdict.delay is not None:
        planned = max(of.policy.delays) if of.policy.delays else of.policy.backoff.cap
        most = max(planned * (1 + of.policy.jitter), of.policy.retry_after_cap)
        assert 0 <= verdict.delay <= most * (1 + 1e-9)
        assert verdict.available_at == NOW + round(verdict.delay * SECOND)


@given(of=everything(ENDED))
def test_only_attempts_that_never_counted_are_given_back(of: Facts) -> None:
    verdict = decide(of)

    assert verdict.refund == isinstance(of.ended, Snoozed)
    assert not verdict.refund or verdict.state is of.leased_from
    assert verdict.lost == (isinstance(of.ended, Failed) and of.ended.was_lost)


@given(of=everything(ENDED))
def test_the_same_facts_give_the_same_verdict(of: Facts) -> None:
    assert decide(of) == decide(replace(of))
