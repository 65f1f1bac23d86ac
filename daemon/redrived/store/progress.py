"""What becomes of a run when something happens to one of its jobs; in the same unit of work.

`settle` and `actions` call these for jobs that belong to a run, after they have changed the
jobs themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from redrive.deciding.standing import why_dead
from redrive.lifecycle import JobState
from redrive.pipelines.advance import descendants
from redrive.pipelines.states import ACTIVE, BROKEN, RunState, StepState
from redrived.store.batch_counts import GateKey
from redrived.store.courses import Courses
from redrived.store.run_rows import Course, StepRow
from redrived.store.tables import BATCH
from redrived.store.unit import Unit


class Settled(NamedTuple):
    """An attempt of a step's job is over: done, dead, cancelled, or to be retried."""

    run: int
    job: int
    state: JobState
    at: int
    result: str | None = None
    metrics: str | None = None
    reason: str | None = None


def settled(unit: Unit, items: Sequence[Settled]) -> None:
    """Move on the runs whose jobs have ended an attempt."""
    if not items:
        return
    courses = Courses(unit)
    loaded = courses.load(item.run for item in items)
    steps = {job: row for course in loaded.values() for job, row in course.jobs()}
    retrying: list[int] = []  # jobs of batches
    # What ends together moves its run on once: a run of many steps is cancelled in one go.
    for (run, at), together in groupby(items, key=lambda item: (item.run, item.at)):
        course = loaded.get(run)
        if course is None:
            continue
        for item in together:
            row = steps.get(item.job)
            if row is not None:
                _note(courses, course, row, item)
                if row.state is StepState.RETRYING and row.round is not None:
                    retrying.append(item.job)
        courses.go_on(course, at)
    gates = courses.write()
    stand_back(unit, retrying)
    for key, counts in gates.items():
        if counts.first_pass == 0:
            _let_go(unit, key)


def _note(courses: Courses, course: Course, row: StepRow, item: Settled) -> None:
    if row.clearing == item.job:
        _cleared(courses, course, row, item)
    elif row.state in ACTIVE:  # else somebody gave it another life by itself
        if item.metrics is not None:
            course.measure(row.name, item.metrics)
        if item.state is JobState.RETRY:
            row.state, row.passed = StepState.RETRYING, 1
        else:
            _ended(courses, course, row, item)


def _cleared(courses: Courses, course: Course, row: StepRow, item: Settled) -> None:
    """The data of a step has been cleared, and the step may be run again; or not."""
    if item.state is JobState.RETRY:
        return
    row.clearing = None
    if item.state is JobState.DONE:
        row.state = StepState.WAITING
        course.cleared[row.name] = item.job
        course.let_through.add(row.name)
        return
    row.state = StepState(item.state)
    row.passed = 1
    row.why = f"clearing its data did not succeed: job {item.job} is {item.state}"
    courses.say_failed(course, row, row.why)


def _ended(courses: Courses, course: Course, row: StepRow, item: Settled) -> None:
    row.state = StepState(item.state)
    row.passed = 1
    if item.state is JobState.DONE:
        row.result = item.result
        course.last_completed = row.name
    elif item.state is JobState.DEAD:
        policy = course.definition.by_name[row.name].lane.policy
        row.why = why_dead(item.reason, policy.max_attempts)
        courses.say_failed(course, row, item.reason)


def stand_back(unit: Unit, jobs: Sequence[int]) -> None:
    """Let retries wait, of these jobs, while first attempts of their round are to come."""
    if not jobs:
        return
    unit.over(
        [(job,) for job in jobs],
        f"UPDATE jobs SET waits = '{BATCH}' FROM {unit.database.rows('job bigint')}"
        " WHERE jobs.id = r.job AND jobs.state = 'retry' AND jobs.waits IN ('ready', 'due')"
        " AND EXISTS (SELECT 1 FROM steps JOIN gates ON gates.batch = steps.batch"
        " AND gates.step = steps.name AND gates.round = steps.round"
        " WHERE steps.run_id = jobs.run_id AND steps.job = jobs.id AND gates.first_pass > 0)",
    )


def _let_go(unit: Unit, key: GateKey) -> None:
    """No first attempt is to come any more: retries wait for their time alone."""
    waiting = unit.execute(
        "SELECT jobs.id, jobs.available_at FROM jobs JOIN steps"
        " ON steps.run_id = jobs.run_id AND steps.name = jobs.step"
        f" WHERE jobs.waits = '{BATCH}' AND jobs.batch = :batch AND jobs.step = :step"
        " AND steps.round = :round",
        batch=key.batch,
        step=key.step,
        round=key.round,
    ).all()
    unit.over(
        [(id, unit.waits(available_at)) for id, available_at in waiting],
        f"UPDATE jobs SET waits = r.waits FROM {unit.database.rows('job bigint', 'waits')}"
        f" WHERE jobs.id = r.job AND jobs.waits = '{BATCH}'",
    )


def revived(
    unit: Unit, jobs: Iterable[tuple[int, int]], by: str, data: Mapping[str, Any]
) -> set[int]:
    """A person gives jobs (run, job) another life: their runs go on from there.

    Answers with the jobs that must wait for it: the data of their steps is cleared first.
    """
    wanted = list(jobs)
    waiting: set[int] = set()
    if not wanted:
        return waiting
    courses = Courses(unit, by, data)
    loaded = courses.load(run for run, _ in wanted)
    for run, job in wanted:
        course = loaded.get(run)
        row = course.step_of(job) if course is not None else None
        if course is None or row is None or row.state not in BROKEN:
            continue
        start_over(courses, course, {row.name})
        if courses.clears_first(course, row):
            waiting.add(job)
        else:
            row.state = StepState.LIVE
    courses.write()
    return waiting


def start_over(courses: Courses, course: Course, names: set[str]) -> None:
    """Set these steps and what follows from them back to waiting, results and all."""
    for name in (*names, *descendants(course.definition, names)):
        row = course.steps[name]
        # Its gate is behind a step whose job has ended; the others wait at the next one.
        if name in names and row.passed:
            course.let_through.add(name)
        else:
            row.passed = 0
            courses.join_round(course, row)
        # One that never began still has its time to wait for.
        if name not in course.let_through or courses.has_begun(row):
            row.scheduled_for = None
        row.state = StepState.WAITING
        row.clearing = None
        row.result = row.why = None
        course.measure(name, None)
    course.state = RunState.RUNNING
    course.finished_at = None
    course.manual_retries += 1
    course.manual_at = courses.now


def clearings(unit: Unit, jobs: Iterable[int]) -> dict[int, int]:
    """Of these jobs, those that wait for the data of their step to be cleared, and by which job."""
    found = unit.over(
        [(job,) for job in jobs],
        f"SELECT jobs.id, steps.clearing FROM {unit.database.rows('job bigint')}"
        " JOIN jobs ON jobs.id = r.job"
        " JOIN steps ON steps.run_id = jobs.run_id AND steps.job = jobs.id"
        f" WHERE steps.state = '{StepState.CLEARING}'",
    )
    return dict(found.all())


def forgotten(unit: Unit, jobs: Sequence[tuple[int, int]]) -> None:
    """Jobs (run, job) have been discarded; their steps stay as they ended."""
    if jobs:
        unit.over(
            jobs,
            f"UPDATE steps SET job = NULL FROM {unit.database.rows('run bigint', 'job bigint')}"
            " WHERE steps.run_id = r.run AND steps.job = r.job",
        )
