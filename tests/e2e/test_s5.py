"""Queue states that can be trusted."""

from __future__ import annotations

from pathlib import Path

import pytest

from redrive.lifecycle import JobState
from support.daemon import eventually
from support.examples import (
    Example,
    MakeExample,
    check_that_no_retry_was_early,
    story,
    told,
    trace,
)


@pytest.fixture
def states(example: MakeExample) -> Example:
    return example("s5_states", DELAY="0.2")


def test_three_attempts_go_through_every_state_and_are_dead_only_then(states: Example) -> None:
    with states.client() as client:
        job = client.enqueue("never").id
        assert client.wait(str(job)) == {str(job): "dead"}
        assert trace(client, job) == [
            "queued 0/3",
            "leased 1/3",
            "retry 1/3",
            "leased 2/3",
            "retry 2/3",
            "leased 3/3",
            "dead 3/3",
        ]
        events = story(client, job)
        again = ["action_started", "action_error", "step_retry"]
        last = ["action_started", "action_error", "step_retry_exhausted"]
        assert told(events) == ["step_started", *again, *again, *last]
        check_that_no_retry_was_early(events)
        assert client.job(job).reason == "exhausted"


def test_a_success_ends_it_with_attempts_left(states: Example) -> None:
    with states.client() as client:
        job = client.enqueue("second_time").id
        client.wait(str(job))
        assert trace(client, job) == [
            "queued 0/3",
            "leased 1/3",
            "retry 1/3",
            "leased 2/3",
            "done 2/3",
        ]
        assert told(story(client, job))[-1] == "action_completed"


def test_a_permanent_error_is_dead_at_once(states: Example) -> None:
    with states.client() as client:
        job = client.enqueue("hopeless").id
        client.wait(str(job))
        assert trace(client, job) == ["queued 0/3", "leased 1/3", "dead 1/3"]
        assert told(story(client, job))[-2:] == ["action_error", "step_retry_exhausted"]
        assert client.job(job).reason == "permanent"


def test_an_attempt_that_died_with_the_daemon_is_one_of_the_three(
    states: Example, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    with states.client() as client:
        job = client.enqueue("wait", {"until": str(go)}).id
        eventually(lambda: client.job(job).state is JobState.LEASED, "it runs")
    states.crash()
    go.touch()
    with states.client() as client:
        client.wait(str(job))
        assert trace(client, job) == [
            "queued 0/3",
            "leased 1/3",
            "retry 1/3",
            "leased 2/3",
            "done 2/3",
        ]
        assert "action_lost" in told(story(client, job))


def test_the_whole_trace_holds_when_the_daemon_dies_between_attempts(states: Example) -> None:
    with states.client() as client:
        job = client.enqueue("never").id
        eventually(lambda: client.job(job).state is JobState.RETRY, "it waits for its retry")
    states.crash()
    with states.client() as client:
        client.wait(str(job))
        seen = trace(client, job)
        assert seen[0] == "queued 0/3"
        assert seen[1::2] == ["leased 1/3", "leased 2/3", "leased 3/3"]
        assert seen[2::2] == ["retry 1/3", "retry 2/3", "dead 3/3"]
