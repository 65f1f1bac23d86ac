"""Jobs of runs that are to have another life by themselves: what their runs say to that."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import msgspec

from redrive.errors import RedriveError, WrongState
from redrive.pipelines.advance import descendants, limit_key
from redrive.pipelines.states import RunState, StepState
from redrived.store import run_rows
from redrived.store.run_rows import Course
from redrived.store.runs import running_with_keys
from redrived.store.unit import Unit


class Revivals:
    """The jobs of one request: each is asked about in turn, and those before it count."""

    def __init__(self, unit: Unit, jobs: Mapping[int, int], *, locked: bool = True) -> None:
        """`jobs`: which run each is of."""
        loaded = run_rows.load(unit, jobs.values(), locked=locked)
        courses = {course.id: course for course in loaded}
        self._course_of = {job: courses.get(run) for job, run in jobs.items()}
        keys: defaultdict[str, set[str]] = defaultdict(set)
        for course in loaded:
            if course.key is not None:
                keys[course.pipeline].add(course.key)
        self._running = {
            (pipeline, key): run
            for pipeline, wanted in keys.items()
            for key, run in running_with_keys(unit, pipeline, wanted).items()
        }

    def refusal(self, job: int) -> RedriveError | None:
        """Why it cannot be run again by itself; None lets its run go on."""
        course = self._course_of.get(job)
        return None if course is None else _of_step(course, job) or self._of_key(course)

    def _of_key(self, course: Course) -> WrongState | None:
        if course.key is None or course.state is RunState.RUNNING:
            return None
        other = self._running.setdefault((course.pipeline, course.key), course.id)
        return None if other == course.id else same_key_runs(other, course.key)


def _of_step(course: Course, job: int) -> RedriveError | None:
    row = course.step_of(job)
    if row is None:
        return WrongState(
            "it was to clear the data of a step, which is done anew when that is run again",
            hint=f"`redrive requeue r{course.id}` runs the step again",
        )
    if row.state in (StepState.WAITING, StepState.GATED):
        return WrongState(
            f"its run is on the way to its step {row.name} again",
            hint=f"`redrive why r{course.id}` says where it is",
        )
    if row.state is StepState.SKIPPED and not course.unmet(row.name):
        return WrongState(
            f"its step {row.name} was skipped: {row.why}",
            hint=f"`redrive show r{course.id}` shows the others",
        )
    return begins_too_early(course, row.name) or cannot_be_cleared(course, {row.name})


def begins_too_early(course: Course, step: str) -> WrongState | None:
    """Unless all that a step needs has succeeded."""
    unmet = course.unmet(step)
    if not unmet:
        return None
    return WrongState(
        f"it cannot begin at {step}: {', '.join(unmet)} has not succeeded",
        hint=f"begin there: `redrive requeue r{course.id} --from {unmet[0]}`",
    )


def cannot_be_cleared(course: Course, names: set[str]) -> RedriveError | None:
    """Unless the key of each clearing can be made: there would be nobody to tell later on."""
    for name in names | descendants(course.definition, names):
        clear = course.definition.by_name[name].clear
        if clear is None or clear.concurrency_key is None or course.steps[name].job is None:
            continue
        try:
            limit_key(clear, msgspec.json.decode(course.args))
        except RedriveError as failed:
            return failed
    return None


def same_key_runs(other: int, key: str) -> WrongState:
    return WrongState(
        f"r{other}, with the same key {key!r}, is running",
        hint=f"wait for it, or cancel it: `redrive cancel r{other}`",
    )
