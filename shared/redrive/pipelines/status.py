"""The one word that a run shows, from the `shows` of its pipeline and steps."""

from __future__ import annotations

from collections.abc import Mapping

from redrive.config.sections import Shows
from redrive.lifecycle import JobState
from redrive.pipelines.definition import Definition
from redrive.pipelines.states import ACTIVE, BROKEN, RunState, StepState

_OPEN = (ACTIVE, {StepState.CLEARING}, {StepState.GATED}, {StepState.WAITING})


def status(
    definition: Definition,
    state: RunState,
    steps: Mapping[str, StepState],
    jobs: Mapping[str, JobState],
    last_completed: str | None,
) -> str:
    """A step's own word, else that of the step completed before, else the pipeline's."""
    match state:
        case RunState.RUNNING:
            return _running(definition, steps, jobs, last_completed)
        case RunState.DONE:
            words = [_step_word(definition, last_completed, "done")]
        case RunState.FAILED | RunState.CANCELLED:
            broken = next((name for name, each in steps.items() if each in BROKEN), None)
            words = [_step_word(definition, broken, state)]
    return next((word for word in (*words, _word(definition.shows, state)) if word), str(state))


def _running(
    definition: Definition,
    steps: Mapping[str, StepState],
    jobs: Mapping[str, JobState],
    last_completed: str | None,
) -> str:
    current = next((name for kinds in _OPEN for name in steps if steps[name] in kinds), None)
    # A retry has been running already, and goes on.
    begun = current is not None and jobs.get(current) in (JobState.LEASED, JobState.RETRY)
    phase = "running" if begun else "queued"
    words = [_step_word(definition, current, phase)]
    if not begun:
        words.append(_step_word(definition, last_completed, "done"))
    in_general = "running" if begun or last_completed else "queued"
    words.append(_word(definition.shows, in_general))
    return next((word for word in words if word), in_general)


def _step_word(definition: Definition, step: str | None, phase: str) -> str | None:
    return _word(definition.by_name[step].shows, phase) if step else None


def _word(shows: Shows | None, phase: str) -> str | None:
    word: str | None = getattr(shows, phase) if shows else None
    return word
