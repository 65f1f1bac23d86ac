"""Runs on their way: loaded, moved on, and written back with one statement of each kind.

An operation loads the runs it is about, changes their steps as plain records, asks
`redrive.pipelines.advance` how they go on, and writes. What that does to the counts of a batch
is the difference between the records before and after, so that no operation has to think of
them. A job without a run never comes here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Struct

from redrive.lifecycle import JobState
from redrive.pipelines.advance import Action, Enqueue, Fail, Finish, Gate, Skip, advance, limit_key
from redrive.pipelines.definition import Lane, Step, inline_name, pinned_name
from redrive.pipelines.states import RunState, StepState
from redrived.store import batch_counts, run_rows
from redrived.store.batch_counts import Counts, GateCounts, GateKey
from redrived.store.enqueue import NewJob, Order, enqueue
from redrived.store.events import said_at_first
from redrived.store.lives import Life, give_life
from redrived.store.rounds import Rounds
from redrived.store.run_rows import Course, StepRow
from redrived.store.unit import Unit, to_json

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class _Start(Struct, frozen=True):
    """A job for a step, or for the clearing before it."""

    row: StepRow
    job: NewJob
    clears: bool = False


class Courses:
    """The runs that one operation is about."""

    def __init__(self, unit: Unit, by: str = "", data: Mapping[str, Any] = _NOTHING) -> None:
        self.rounds = Rounds(unit)
        self._unit = unit
        # For the events of new lives.
        self._wish: dict[str, Any] = {**({"by": by} if by else {}), **data}
        self._counts = Counts()
        self._before: dict[tuple[int, str], StepRow] = {}
        self._loaded: dict[int, Course] = {}
        self._new: list[Course] = []
        self._starts: list[_Start] = []

    @property
    def now(self) -> int:
        return self._unit.now

    def load(self, ids: Iterable[int]) -> dict[int, Course]:
        for course in run_rows.load(self._unit, ids):
            self._loaded[course.id] = course
            self._counts.add(course, -1)
            for row in course.steps.values():
                self._before[course.id, row.name] = msgspec.structs.replace(row)
        return self._loaded

    def add(self, course: Course) -> None:
        """A run that begins."""
        self._new.append(course)
        for place, step in enumerate(course.definition.steps):
            row = StepRow(run_id=course.id, name=step.name, place=place)
            course.steps[step.name] = row
            self.join_round(course, row)
        self._say(course, "execution_started")
        self.go_on(course)

    def join_round(self, course: Course, row: StepRow) -> None:
        """Count a step among those its batch waits for from now on, if it is one of them."""
        step = course.definition.by_name[row.name]
        if course.batch is not None and step.joins_batch:
            row.batch, row.round = course.batch, self.rounds.of(course.batch, step)

    def go_on(self, course: Course, now: int | None = None) -> None:
        """Do what there is to do for a run now."""
        if course.state is RunState.RUNNING:
            facts = course.facts(self._unit.now if now is None else now)
            for action in advance(course.definition, facts):
                self.apply(course, action)

    def apply(self, course: Course, action: Action) -> None:
        match action:
            case Enqueue():
                self._start(course, action)
            case Gate(step=name):
                course.steps[name].state = StepState.GATED
            case Skip(step=name, why=why):
                course.steps[name].state = StepState.SKIPPED
                course.steps[name].why = why
            case Fail(step=name, why=why):
                course.steps[name].state = StepState.DEAD
                course.steps[name].why = why
                if action.in_condition:
                    data = {"step": name, "message": why}
                    self._unit.emit("condition_error", run=course.id, data=data)
                self.say_failed(course, course.steps[name], why)
            case Finish(state=state):
                course.state = state
                course.finished_at = self._unit.now
                done = state is RunState.DONE
                self._say(course, "execution_completed" if done else "execution_failed")

    def say_failed(self, course: Course, row: StepRow, why: str | None = None) -> None:
        """There will be no further attempt at a step, unless a person wants one."""
        data = {"step": row.name, **({"why": why} if why else {})}
        self._unit.emit("step_failed_terminal", job=row.job, run=course.id, data=data)

    def write(self) -> dict[GateKey, GateCounts]:
        """Everything that has changed; answers with the gates whose counts were moved."""
        self._write_jobs()
        loaded = list(self._loaded.values())
        for course in (*self._new, *loaded):
            self._counts.add(course, 1)
        if self._new:
            run_rows.insert(self._unit, self._new)
        if loaded:
            steps = [row for course in loaded for row in course.steps.values()]
            changed = [row for row in steps if row != self._before[row.run_id, row.name]]
            run_rows.update(self._unit, loaded, changed)
        return batch_counts.write(self._unit, self._counts)

    def has_begun(self, row: StepRow) -> bool:
        """Whether there has been an attempt at the present job of a step."""
        unbegun = "SELECT 1 FROM jobs WHERE id = :job AND last_attempt_at IS NULL"
        return row.job is not None and self._unit.execute(unbegun, job=row.job).first() is None

    def clears_first(self, course: Course, row: StepRow) -> bool:
        """Begin to clear the data of a step, if it may have made some since that was done."""
        clear = course.definition.by_name[row.name].clear
        if clear is None or row.name in course.cleared or not self.has_begun(row):
            return False
        row.state = StepState.CLEARING
        self._starts.append(_Start(row, self._clearing(course, row, clear), clears=True))
        return True

    # ---- jobs of steps -----------------------------------------------------------------------

    def _start(self, course: Course, action: Enqueue) -> None:
        row, step = course.steps[action.step], course.definition.by_name[action.step]
        row.scheduled_for = action.scheduled_for
        if self.clears_first(course, row):
            return
        row.state = StepState.LIVE
        row.why = None
        job = NewJob(
            **self._laned(step.lane, course, row),
            task=_task_name(course, step),
            pinned=pinned_name(course.pipeline, course.version),
            args=course.args if action.args is None else to_json(action.args),
            available_at=action.scheduled_for,
            scheduled_for=action.scheduled_for,
            limit_key=action.limit_key,
        )
        self._starts.append(_Start(row, job))

    def _clearing(self, course: Course, row: StepRow, lane: Lane) -> NewJob:
        key = limit_key(lane, msgspec.json.decode(course.args))
        return NewJob(
            **self._laned(lane, course, row), task=lane.task, args=course.args, limit_key=key
        )

    def _laned(self, lane: Lane, course: Course, row: StepRow) -> dict[str, Any]:
        return {
            "queue": lane.queue,
            "operation": lane.operation,
            "rank": self._unit.rank(lane.queue, lane.operation),
            "priority": lane.priority,
            "max_attempts": lane.policy.max_attempts,
            "mode": course.mode,
            "run_id": course.id,
            "step": row.name,
            "batch": course.batch,
        }

    def _write_jobs(self) -> None:
        """A step whose last job failed gives it another life; any other gets a new job."""
        ended = self._ended_jobs()
        again = [each for each in self._starts if not each.clears and each.row.job in ended]
        fresh = [each for each in self._starts if each.clears or each.row.job not in ended]
        if again:
            self._write_lives(again, ended)
        if fresh:
            jobs = [each.job for each in fresh]
            [placed] = enqueue(self._unit, [Order(jobs=jobs, data=self._wish)])
            for start, place in zip(fresh, placed, strict=True):
                if start.clears:
                    start.row.clearing = place.id
                else:
                    start.row.job = place.id
        self._starts.clear()

    def _ended_jobs(self) -> dict[int | None, tuple[str, int]]:
        """Of the jobs that steps had before: those that may live again, with state and life."""
        before = [(each.row.job,) for each in self._starts if each.row.job is not None]
        if not before:
            return {}
        found = self._unit.over(
            before,
            f"SELECT jobs.id, jobs.state, jobs.life FROM {self._unit.database.rows('job bigint')}"
            " JOIN jobs ON jobs.id = r.job WHERE jobs.state IN ('dead', 'cancelled')",
        )
        return {id: (state, life) for id, state, life in found}

    def _write_lives(self, starts: list[_Start], ended: dict[int | None, tuple[str, int]]) -> None:
        lives: list[Life] = []
        for start in starts:
            job, new = start.row.job, start.job
            assert job is not None
            times = new.available_at, new.scheduled_for
            lives.append(Life(job, new.rank, new.args, new.limit_key, *times))
            was, life = ended[job]
            wish = self._wish or self._wish_before(start.row)
            self._unit.emit(
                "job_requeued",
                job=job,
                run=start.row.run_id,
                state=JobState.QUEUED,
                attempts=0,
                data={"was": was, "life": life + 1, **wish},
            )
            self._unit.moved(new.queue, new.task, was, JobState.QUEUED)
        for start, waits in zip(starts, give_life(self._unit, lives), strict=True):
            self._unit.waiting(start.job.queue, start.job.task, JobState.QUEUED, waits)

    def _wish_before(self, row: StepRow) -> dict[str, Any]:
        """Who asked for the step to be run again before its data was cleared, and what was said."""
        cleared_by = self._loaded[row.run_id].cleared.get(row.name)
        return {} if cleared_by is None else said_at_first(self._unit.connection, cleared_by)

    def _say(self, course: Course, kind: str) -> None:
        data: dict[str, Any] = {"pipeline": course.pipeline, "version": course.version}
        told = {"batch": course.batch, "key": course.key, **self._wish}
        data |= {name: value for name, value in told.items() if value}
        self._unit.emit(kind, run=course.id, state=course.state, data=data)


def _task_name(course: Course, step: Step) -> str:
    if step.inline is None:
        return step.lane.task
    return inline_name(course.pipeline, step.name, course.version)
