"""How much asking back a verb needs before it is done."""

from __future__ import annotations

import pytest

from redrive.lifecycle import JobState
from redrive_tui.verbs import SMALL, VERBS, Rung, applies, rung


def step(verb: str, number: int = 1, **more: bool) -> Rung:
    return rung(VERBS[verb], number, **{"protected": False, **more})


def test_what_is_safe_for_one_job_is_done_at_once() -> None:
    for verb in ("requeue", "run-now", "cancel", "hold", "release", "pause"):
        assert step(verb) is Rung.AT_ONCE


def test_what_cannot_be_taken_back_is_asked_about_even_for_one() -> None:
    for verb in ("kill", "restart", "discard", "drain"):
        assert step(verb) is Rung.ASK


def test_a_running_job_is_never_stopped_without_a_question() -> None:
    assert step("cancel", running=True) is Rung.ASK


def test_a_small_set_is_asked_about_and_a_large_one_needs_its_number() -> None:
    assert step("hold", 2) is Rung.ASK
    assert step("hold", SMALL) is Rung.ASK
    assert step("hold", SMALL + 1) is Rung.TYPE_THE_NUMBER


def test_a_whole_queue_needs_its_number_however_small_it_is() -> None:
    assert step("discard", 3, whole=True) is Rung.TYPE_THE_NUMBER


def test_a_protected_environment_asks_one_step_more() -> None:
    assert step("requeue", protected=True) is Rung.ASK
    assert step("kill", protected=True) is Rung.TYPE_THE_NUMBER


@pytest.mark.parametrize(
    ("verb", "states"),
    [
        ("kill", {JobState.LEASED}),
        ("restart", {JobState.LEASED}),
        ("requeue", {JobState.DEAD, JobState.CANCELLED}),
        ("discard", {JobState.DEAD, JobState.CANCELLED}),
        ("run-now", {JobState.QUEUED, JobState.RETRY}),
        ("cancel", {JobState.QUEUED, JobState.RETRY, JobState.LEASED}),
    ],
)
def test_a_verb_knows_the_states_it_is_for(verb: str, states: set[JobState]) -> None:
    assert {state for state in JobState if applies(VERBS[verb], state)} == states
