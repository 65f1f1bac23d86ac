"""Retry policies: what each way of writing one means, and the delays it makes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.config.sections import Backoff, Retry
from redrive.errors import UsageProblem
from redrive.policy import LONGEST_TIMELINE, RetryPolicy, delay_before, resolve, timeline

TABLES = {
    "ingest": Retry(delays=[60, 180, 600]),
    "polite": Retry(backoff=Backoff(first=1, factor=10, cap=50), max_attempts=5, unknown="once"),
}


def delays(policy: RetryPolicy) -> list[float]:
    return [planned.delay for planned in timeline(policy)[1:]]


@pytest.mark.parametrize("retry", [None, False])
def test_a_task_without_retry_runs_once(retry: Any) -> None:
    assert resolve(retry, TABLES).max_attempts == 1


def test_true_is_the_default_policy() -> None:
    policy = resolve(True)

    assert (policy.max_attempts, policy.jitter) == (3, 0.1)
    assert delays(policy) == [5, 10]


def test_a_number_is_how_many_attempts() -> None:
    assert resolve(5).max_attempts == 5
    assert resolve(1).max_attempts == 1


def test_n_delays_mean_one_attempt_more() -> None:
    policy = resolve("ingest", TABLES)

    assert policy.max_attempts == 4
    assert delays(policy) == [60, 180, 600]


def test_the_last_delay_repeats_when_there_are_more_attempts() -> None:
    assert delays(resolve(Retry(delays=[1, 2], max_attempts=5))) == [1, 2, 2, 2]


def test_backoff_grows_to_its_cap() -> None:
    assert delays(resolve("polite", TABLES)) == [1, 10, 50, 50]


def test_what_a_table_leaves_out_comes_from_the_default_table() -> None:
    tables = {"default": Retry(max_attempts=7, jitter=0, retry_when="attempt < 3"), **TABLES}

    assert resolve(True, tables).max_attempts == 7
    assert resolve("ingest", tables).max_attempts == 4
    assert resolve("ingest", tables).jitter == 0
    assert resolve(Retry(jitter=0.5), tables).max_attempts == 7
    assert resolve("polite", tables).retry_when == "attempt < 3"
    assert resolve("default", tables) == resolve(True, tables)


def test_own_backoff_replaces_inherited_delays_and_the_reverse() -> None:
    delaying = {"default": Retry(delays=[7, 8])}
    backing = {"default": Retry(backoff=Backoff(first=3))}

    assert delays(resolve(Retry(backoff=Backoff(first=1)), delaying)) == [1, 2]
    assert delays(resolve(Retry(delays=[9]), backing)) == [9]
    assert delays(resolve(Retry(max_attempts=4), delaying)) == [7, 8, 8]


def test_delays_and_backoff_together_are_refused() -> None:
    with pytest.raises(UsageProblem, match="both delays and backoff; keep one"):
        resolve(Retry(delays=[1], backoff=Backoff()))


def test_an_unknown_name_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(UsageProblem, match='no retry policy "ingets"; did you mean "ingest"'):
        resolve("ingets", TABLES)
    with pytest.raises(UsageProblem, match=r"write it as a table \[retry.zzz\]"):
        resolve("zzz", TABLES)
    assert resolve("default") == resolve(True)


def test_a_timeline_shows_each_attempt_with_what_jitter_makes_of_it() -> None:
    first, second, third = timeline(resolve(True))

    assert (first.attempt, first.delay, first.at) == (1, 0, 0)
    assert (second.attempt, second.delay, second.at) == (2, 5, 5)
    assert (third.attempt, third.delay, third.at) == (3, 10, 15)
    assert (third.delay_min, third.delay_max) == (9, 11)
    assert (third.at_min, third.at_max) == (13.5, 16.5)


def test_a_timeline_ends_where_retry_for_does() -> None:
    policy = resolve(Retry(max_attempts=9, delays=[10], retry_for=21))

    assert [planned.at for planned in timeline(policy)] == [0, 10, 20]
    assert timeline(policy)[-1].at_max == 21
    assert len(timeline(resolve(Retry(delays=[2], retry_for=1)))) == 1
    assert len(timeline(resolve(Retry(delays=[2], retry_for=2)))) == 2


def test_a_timeline_of_very_many_attempts_is_cut() -> None:
    assert len(timeline(resolve(1_000_000))) == LONGEST_TIMELINE


POLICIES = st.builds(
    RetryPolicy,
    max_attempts=st.integers(1, 10**6),
    delays=st.lists(st.floats(0, 1e6), max_size=5).map(tuple),
    backoff=st.builds(
        Backoff, first=st.floats(0, 1e6), factor=st.floats(1, 1e9), cap=st.floats(0, 1e7)
    ),
    jitter=st.floats(0, 1),
)


@given(policy=POLICIES, failures=st.integers(1, 10**6), roll=st.floats(0, 1, exclude_max=True))
def test_a_delay_stays_within_its_policy(policy: RetryPolicy, failures: int, roll: float) -> None:
    most = max(policy.delays) if policy.delays else policy.backoff.cap

    assert 0 <= delay_before(policy, failures, roll) <= most * (1 + policy.jitter) * (1 + 1e-9)


@given(policy=POLICIES, failures=st.integers(1, 50))
def test_backoff_never_shrinks(policy: RetryPolicy, failures: int) -> None:
    if not policy.delays:
        earlier = delay_before(policy, failures, 0.5)
        assert delay_before(policy, failures + 1, 0.5) >= earlier


@given(policy=POLICIES, roll=st.floats(0, 1, exclude_max=True))
def test_every_roll_falls_into_the_timeline(policy: RetryPolicy, roll: float) -> None:
    for planned in timeline(policy)[1:10]:
        delay = delay_before(policy, planned.attempt - 1, roll)
        slack = 1e-9 * (1 + planned.delay)
        assert planned.delay_min - slack <= delay <= planned.delay_max + slack


@given(
    attempts=st.none() | st.integers(1, 99),
    given_delays=st.none() | st.lists(st.floats(0, 99), max_size=4),
    jitter=st.none() | st.floats(0, 1),
)
def test_no_way_of_writing_a_policy_leaves_anything_open(
    attempts: int | None, given_delays: list[float] | None, jitter: float | None
) -> None:
    written = Retry(max_attempts=attempts, delays=given_delays, jitter=jitter)
    policy = resolve("own", {"own": written})

    assert policy == resolve(written)
    assert policy.max_attempts == (
        attempts or (3 if given_delays is None else len(given_delays) + 1)
    )
