"""What operators do to runs: to take one up again, and what is done to all its live jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from redrive.config.sections import ManualRetry
from redrive.errors import NotFound, PartialResults, RedriveError, WrongState
from redrive.lifecycle import Reason
from redrive.manual import refusal
from redrive.pipelines.advance import descendants
from redrive.pipelines.states import ACTIVE, BROKEN, RunState, StepState
from redrived.store import actions
from redrived.store.actions import Act, Acted
from redrived.store.courses import Courses
from redrived.store.progress import start_over
from redrived.store.revivals import begins_too_early, cannot_be_cleared, same_key_runs
from redrived.store.run_rows import Course
from redrived.store.runs import running_with_keys
from redrived.store.unit import Unit


class RunAct(Struct, frozen=True, kw_only=True):
    """A verb, the runs it is for, and who wants it."""

    verb: str
    runs: Sequence[int]
    by: str
    force: bool = False
    again: bool = False  # results may be made again
    from_step: str | None = None
    manual: ManualRetry = ManualRetry()
    data: dict[str, Any] = {}


class RunActed(Struct, frozen=True, kw_only=True):
    """What became of one run. `running`: attempts of its jobs that have to be ended."""

    id: int
    state: str | None = None
    running: Sequence[Acted] = ()
    refused: RedriveError | None = None


def act_on_runs(unit: Unit, acts: Sequence[RunAct]) -> list[list[RunActed]]:
    return [[_act(unit, wish, id) for id in wish.runs] for wish in acts]


def _act(unit: Unit, wish: RunAct, id: int) -> RunActed:
    courses = Courses(unit, wish.by, wish.data)
    course = courses.load([id]).get(id)
    if course is None:
        return RunActed(id=id, refused=missing())
    try:
        match wish.verb:
            case "requeue":
                return _requeue(unit, wish, courses, course)
            case "cancel" | "kill":
                return _cancel(unit, wish, courses, course)
            case "discard":
                raise undiscardable()
            case _:
                return _pass_on(unit, wish, course)
    except RedriveError as refused:
        return RunActed(id=id, state=course.state, refused=refused)


# ---- taking a run up again -----------------------------------------------------------------


def _requeue(unit: Unit, wish: RunAct, courses: Courses, course: Course) -> RunActed:
    start_over(courses, course, beginning(unit, wish, course))
    courses.go_on(course)
    courses.write()
    return RunActed(id=course.id, state=course.state)


def beginning(unit: Unit, wish: RunAct, course: Course) -> set[str]:
    """The steps to run again first; raises why it cannot be."""
    if course.state is RunState.RUNNING:
        raise WrongState("it is running", hint=f"cancel it first: `redrive cancel r{course.id}`")
    names = _where_to_begin(course, wish.from_step)
    _check(unit, wish, course, names)
    if (refused := cannot_be_cleared(course, names)) is not None:
        raise refused
    if course.key is not None:
        other = running_with_keys(unit, course.pipeline, {course.key}).get(course.key)
        if other is not None:
            raise same_key_runs(other, course.key)
    return names


def _where_to_begin(course: Course, from_step: str | None) -> set[str]:
    """The steps to run again first: one that was named, those that failed, or the first ones."""
    if from_step is None:
        failed = {name for name, row in course.steps.items() if row.state in BROKEN}
        roots = {step.name for step in course.definition.steps if not step.needs}
        # What failed behind something that failed begins there.
        return failed - descendants(course.definition, failed) if failed else roots
    step = course.definition.by_name.get(from_step)
    if step is None:
        names = ", ".join(course.steps)
        raise NotFound(f"{course.pipeline!r} has no step {from_step!r}", hint=f"it has {names}")
    refused = begins_too_early(course, from_step)
    if refused is not None:
        raise refused
    return {from_step}


def _check(unit: Unit, wish: RunAct, course: Course, names: set[str]) -> None:
    affected = names | descendants(course.definition, names)
    refused = refusal(
        reason=_reason(unit, course, affected),
        manual_retries=course.manual_retries,
        last_manual_at=course.manual_at,
        now=unit.now,
        rules=wish.manual,
        force=wish.force,
    )
    if refused is not None:
        raise refused
    done = [name for name, row in course.steps.items() if row.state is StepState.DONE]
    if done and affected >= {*done} and not wish.again:
        raise PartialResults(
            f"it has results of {', '.join(done)}; all of it would be made again",
            hint="to process it once more from the start, confirm it with --yes",
        )


def _reason(unit: Unit, course: Course, names: set[str]) -> Reason | None:
    """Whether one of the steps failed for good."""
    jobs = [(row.job,) for name in names if (row := course.steps[name]).state is StepState.DEAD]
    found = unit.over(
        jobs,
        f"SELECT 1 FROM {unit.database.rows('job bigint')} JOIN jobs ON jobs.id = r.job"
        f" WHERE jobs.state = 'dead' AND jobs.reason = '{Reason.PERMANENT}' LIMIT 1",
    ).first()
    return Reason.PERMANENT if found else None


# ---- what is done to its jobs --------------------------------------------------------------


def _cancel(unit: Unit, wish: RunAct, courses: Courses, course: Course) -> RunActed:
    check_running(wish, course)
    for row in course.steps.values():
        if row.state in (StepState.WAITING, StepState.GATED):
            row.state = StepState.CANCELLED
            row.why = f"the run was cancelled by {wish.by}"
    jobs = live_jobs(course)
    courses.go_on(course)
    courses.write()
    acted = _on_jobs(unit, wish, jobs)
    state = unit.execute("SELECT state FROM runs WHERE id = :id", id=course.id).scalar()
    running = [each for each in acted if each.running is not None]
    return RunActed(id=course.id, state=state, running=running)


def _pass_on(unit: Unit, wish: RunAct, course: Course) -> RunActed:
    check_running(wish, course)
    acted = _on_jobs(unit, wish, live_jobs(course))
    check_some(acted)
    running = [each for each in acted if each.running is not None]
    return RunActed(id=course.id, state=course.state, running=running)


def live_jobs(course: Course) -> list[int]:
    jobs = [
        row.clearing if row.state is StepState.CLEARING else row.job
        for row in course.steps.values()
        if row.state in ACTIVE or row.state is StepState.CLEARING
    ]
    return [job for job in jobs if job is not None]


def _on_jobs(unit: Unit, wish: RunAct, jobs: Sequence[int]) -> list[Acted]:
    return actions.act(unit, [act_on_jobs(wish, jobs)])[0]


def act_on_jobs(wish: RunAct, jobs: Sequence[int]) -> Act:
    return Act(verb=wish.verb, jobs=jobs, by=wish.by, force=wish.force, data=wish.data)


# ---- why not -------------------------------------------------------------------------------


def check_running(wish: RunAct, course: Course) -> None:
    if course.state is not RunState.RUNNING:
        raise WrongState(
            f"it is {course.state}; {wish.verb} is for runs that are running",
            hint=f"`redrive show r{course.id}` says how it ended",
        )


def check_some(acted: Sequence[Acted]) -> None:
    """Its live jobs, of which at least one must have been in a state for it."""
    if not acted:
        raise WrongState(
            "none of its steps has a job now",
            hint="`redrive show` says what it waits for",
        )
    refused = [each.refused for each in acted if each.refused]
    if len(refused) == len(acted):
        raise refused[0]


def missing() -> NotFound:
    return NotFound("there is no such run", hint="`redrive runs` lists them")


def undiscardable() -> WrongState:
    return WrongState(
        "a run cannot be discarded, only a job",
        hint="runs are forgotten when `keep` in [store] says so",
    )
