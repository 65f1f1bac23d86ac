"""How does a run go on? Definition and state in, actions out.

Whoever stores the run calls `advance` after every change and does what it says: it is asked
again with the new state, never told what just happened, so that a run can be taken up anywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from redrive.clock import SECOND
from redrive.conditions import ConditionFailed, compile_condition
from redrive.errors import RedriveError
from redrive.models import Json
from redrive.orders import checked_args
from redrive.pipelines.definition import Definition, Lane, Step
from redrive.pipelines.states import BROKEN, UNSETTLED, RunState, StepState
from redrive.templates import key_of, render


class RunFacts(Struct, frozen=True, kw_only=True):
    """All that the course of a run depends on."""

    id: int
    args: dict[str, Json]
    batch: str | None
    key: str | None = None
    states: Mapping[str, StepState]
    results: Mapping[str, Json] = {}
    let_through: Collection[str] = ()  # steps whose gate has opened for this run
    scheduled: Mapping[str, int] = {}  # steps whose time has been set already
    now: int


class Enqueue(Struct, frozen=True, kw_only=True):
    """Give the step a job; `args` is None when it gets the run's own."""

    step: str
    args: dict[str, Json] | None = None
    limit_key: str | None = None
    scheduled_for: int | None = None


class Gate(Struct, frozen=True, kw_only=True):
    """Let the step wait for the batch."""

    step: str


class Skip(Struct, frozen=True, kw_only=True):
    step: str
    why: str


class Fail(Struct, frozen=True, kw_only=True):
    """The step cannot even be tried: what its definition says does not fit this run."""

    step: str
    why: str
    in_condition: bool = False


class Finish(Struct, frozen=True, kw_only=True):
    state: RunState


Action = Enqueue | Gate | Skip | Fail | Finish


def advance(definition: Definition, run: RunFacts) -> list[Action]:
    """What there is to do now; nothing, when the run waits for something."""
    states = dict(run.states)
    run = replace(run, states=states)  # a step knows what was said just now of those before it
    barred: dict[str, str] = {}  # step → the one before it that failed
    actions: list[Action] = []
    for step in definition.in_order:
        barrier = _barrier(step, states, barred)
        if barrier is not None:
            barred[step.name] = barrier
        if states[step.name] is not StepState.WAITING:
            continue
        action = _next(step, run, barrier)
        if action is not None:
            actions.append(action)
            states[step.name] = _STATE_AFTER[type(action)]
    if not UNSETTLED & set(states.values()):
        actions.append(Finish(state=_end(states.values())))
    return actions


_STATE_AFTER: Mapping[type[Struct], StepState] = {
    Enqueue: StepState.LIVE,
    Gate: StepState.GATED,
    Skip: StepState.SKIPPED,
    Fail: StepState.DEAD,
}


def _barrier(step: Step, states: Mapping[str, StepState], barred: dict[str, str]) -> str | None:
    """The failed step because of which this one will never run."""
    for need in step.needs:
        if states[need] in BROKEN:
            return need
        if need in barred:
            return barred[need]
    return None


def _opening(step: str) -> str:
    """The step at the head of a sentence: a word gets a capital, a name stays as it is."""
    is_word = len(step) > 1 and step.isalpha() and step.islower()
    return step.capitalize() if is_word else f"Step {step}"


def _next(step: Step, run: RunFacts, barrier: str | None) -> Action | None:
    if barrier is not None:
        how = "cancelled" if run.states[barrier] is StepState.CANCELLED else "failed"
        return Skip(step=step.name, why=f"{_opening(barrier)} {how}; {step.name} skipped")
    if any(run.states[need] in UNSETTLED for need in step.needs):
        return None
    if step.when is not None:
        try:
            if not compile_condition(step.when).holds(_known(run)):
                return Skip(step=step.name, why=f"`{step.when}` does not hold")
        except ConditionFailed as failed:
            return Fail(step=step.name, why=failed.message, in_condition=True)
    if step.gate and run.batch is not None and step.name not in run.let_through:
        return Gate(step=step.name)
    return start_step(step, run)


def start_step(step: Step, run: RunFacts) -> Enqueue | Fail:
    """Nothing keeps the step any more, its delay perhaps excepted."""
    try:
        args = None if step.args is None else render(step.args, _known(run))
        if args is not None:
            checked_args(args)  # as those of any job
        key = limit_key(step.lane, run.args if args is None else args)
    except RedriveError as failed:
        return Fail(step=step.name, why=failed.message)
    return Enqueue(step=step.name, args=args, limit_key=key, scheduled_for=_time_of(step, run))


def _time_of(step: Step, run: RunFacts) -> int | None:
    """When the step is to start, if not at once; a time that was set once does not move."""
    if step.name in run.scheduled:
        return run.scheduled[step.name]
    # The timer of a gate is the delay, and has run out by the time it opens.
    if not step.delay or step.name in run.let_through:
        return None
    return run.now + round(step.delay * SECOND)


def limit_key(lane: Lane, args: Mapping[str, Json]) -> str | None:
    """The key whose jobs share the task's limits, or None for a task without keys."""
    if lane.concurrency_key is None:
        return None
    return key_of(lane.task, lane.concurrency_key, args)


def descendants(definition: Definition, names: Iterable[str]) -> set[str]:
    """The steps that need one of these, directly or not; these not among them."""
    chosen = set(names)
    reached: set[str] = set()
    for step in definition.in_order:
        if (chosen | reached) & set(step.needs):
            reached.add(step.name)
    return reached - chosen


def _known(run: RunFacts) -> dict[str, Any]:
    """What templates and `when` may speak of."""
    return {
        "args": run.args,
        "steps": {
            name: {"result": run.results.get(name), "state": str(state)}
            for name, state in run.states.items()
            if state in (StepState.DONE, StepState.SKIPPED)
        },
        "run": f"r{run.id}",
        "batch": run.batch,
        "key": run.key,
    }


def _end(states: Iterable[StepState]) -> RunState:
    ended = set(states)
    if StepState.DEAD in ended:
        return RunState.FAILED
    return RunState.CANCELLED if StepState.CANCELLED in ended else RunState.DONE
