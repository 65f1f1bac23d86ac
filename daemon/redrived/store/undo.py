"""Redrives taken back: jobs that nobody has begun are what they were, and so are their runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from redrive.deciding.standing import why_dead
from redrive.errors import WrongState
from redrive.lifecycle import JobState
from redrive.pipelines.advance import Finish, advance
from redrive.pipelines.states import ACTIVE, StepState
from redrived.store.actions import Act, act
from redrived.store.courses import Courses
from redrived.store.keys import free_keys
from redrived.store.redrives import IS_CLEARED_FIRST, Change, change
from redrived.store.run_rows import Course, StepRow
from redrived.store.tables import KEY
from redrived.store.unit import Unit


class _Kept(Struct, frozen=True):
    """A job that waits in the life a redrive gave it, and what it and its run were before."""

    state: JobState
    id: int
    queue: str
    task: str
    waits: str | None
    limit_key: str | None
    scheduled_for: int | None
    metrics: str | None
    run_id: int | None
    reason: str | None
    attempts: int
    run_manual_retries: int | None
    run_manual_at: int | None
    run_finished_at: int | None


def undo(unit: Unit, wishes: Sequence[tuple[int, str]]) -> list[int]:
    """(redrive, by): what it requeued and nobody has begun is dead or cancelled again."""
    return [_undo(unit, id, by) for id, by in wishes]


def _undo(unit: Unit, id: int, by: str) -> int:
    kept, clearings = _unbegun(unit, id), _clearings(unit, id)
    if not kept and not clearings and not _has_turns_left(unit, id):
        raise _refusal(unit, id)
    _put_back(unit, id, kept, by)
    _runs_put_back(unit, [each for each in kept if each.run_id is not None], by)
    if clearings:
        act(unit, [Act(verb="cancel", jobs=clearings, by=by, data={"redrive": id})])
    unit.execute(
        "UPDATE redrive_jobs SET outcome = 'undone' WHERE redrive = :id AND (outcome IS NULL"
        " OR (outcome = 'requeued' AND job IN (SELECT id FROM jobs WHERE state IN"
        f" ('dead', 'cancelled') AND life = redrive_jobs.life AND NOT {IS_CLEARED_FIRST})))",
        id=id,
    )
    undone = Change(redrive=id, state="undone", event="redrive_undone", by=by, finished=True)
    change(unit, [undone])
    return len(kept) + len(clearings)


def _unbegun(unit: Unit, id: int) -> list[_Kept]:
    lock = "" if unit.database.is_sqlite else " FOR UPDATE OF jobs"
    found = unit.execute(
        "SELECT kept.state, jobs.id, jobs.queue, jobs.task, jobs.waits, jobs.limit_key,"
        " jobs.scheduled_for, jobs.metrics, jobs.run_id, kept.reason, kept.attempts,"
        " kept.run_manual_retries, kept.run_manual_at, kept.run_finished_at"
        " FROM redrive_jobs AS kept JOIN jobs ON jobs.id = kept.job"
        " WHERE kept.redrive = :id AND kept.outcome = 'requeued'"
        f" AND jobs.state = 'queued' AND jobs.life = kept.life + 1{lock}",
        id=id,
    )
    return [_Kept(JobState(row[0]), *row[1:]) for row in found]


def _clearings(unit: Unit, id: int) -> list[int]:
    """The jobs that were to clear data for it, and have not begun."""
    lock = "" if unit.database.is_sqlite else " FOR UPDATE OF clearing"
    found = unit.execute(
        "SELECT clearing.id FROM redrive_jobs JOIN jobs ON jobs.id = redrive_jobs.job"
        " JOIN steps ON steps.run_id = jobs.run_id AND steps.job = jobs.id"
        " JOIN jobs AS clearing ON clearing.id = steps.clearing"
        " WHERE redrive_jobs.redrive = :id AND redrive_jobs.outcome = 'requeued'"
        f" AND steps.state = '{StepState.CLEARING}' AND clearing.state = 'queued'{lock}",
        id=id,
    )
    return [job for (job,) in found]


def _has_turns_left(unit: Unit, id: int) -> bool:
    statement = "SELECT 1 FROM redrive_jobs WHERE redrive = :id AND outcome IS NULL LIMIT 1"
    return unit.execute(statement, id=id).first() is not None


def _refusal(unit: Unit, id: int) -> WrongState:
    state = unit.execute("SELECT state FROM redrives WHERE id = :id", id=id).scalar()
    if state == "undone":
        return WrongState(
            f"redrive {id} was undone already",
            hint="what it had requeued and had begun by then was left alone",
        )
    return WrongState(
        f"redrive {id} has nothing to take back",
        hint="all that it requeued has begun or ended; `redrive redrives` shows what became of it",
    )


def _put_back(unit: Unit, id: int, kept: Sequence[_Kept], by: str) -> None:
    unit.over(
        [(each.id,) for each in kept],
        "UPDATE jobs SET state = kept.state, waits = NULL, reason = kept.reason,"
        " attempts = kept.attempts, finished_at = kept.finished_at, life = kept.life,"
        " manual_retries = jobs.manual_retries - 1, manual_at = kept.manual_at"
        f" FROM redrive_jobs AS kept, {unit.database.rows('job bigint')}"
        " WHERE jobs.id = r.job AND kept.job = r.job AND kept.redrive = :id",
        id=id,
    )
    for each in kept:
        unit.emit(
            "redrive_undone",
            job=each.id,
            run=each.run_id,
            state=each.state,
            attempts=each.attempts,
            data={"redrive": id, "by": by},
        )
        unit.moved(each.queue, each.task, JobState.QUEUED, each.state)
        unit.waiting(each.queue, each.task, JobState.QUEUED, each.waits, -1)
    free_keys(unit, [each.limit_key for each in kept if each.limit_key and each.waits != KEY])


# ---- their runs --------------------------------------------------------------------------


def _runs_put_back(unit: Unit, kept: Sequence[_Kept], by: str) -> None:
    if not kept:
        return
    courses = Courses(unit, by)
    loaded = courses.load(each.run_id for each in kept if each.run_id is not None)
    before: dict[int, _Kept] = {}
    taken_back: Counter[int] = Counter()
    for each in kept:
        course = loaded.get(each.run_id or 0)
        row = course.step_of(each.id) if course is not None else None
        if course is None or row is None or row.state not in ACTIVE:
            continue  # its life is no matter of its run
        _step_put_back(course, row, each)
        before[course.id] = each
        taken_back[course.id] += 1
    for id, was in before.items():
        _end_again(courses, loaded[id], was, taken_back[id])
    courses.write()


def _step_put_back(course: Course, row: StepRow, was: _Kept) -> None:
    row.state = StepState(was.state)
    row.scheduled_for = was.scheduled_for
    course.measure(row.name, was.metrics)
    if was.state is JobState.DEAD:
        policy = course.definition.by_name[row.name].lane.policy
        row.why = why_dead(was.reason, policy.max_attempts)


def _end_again(courses: Courses, course: Course, was: _Kept, taken_back: int) -> None:
    """What follows those steps is skipped again; a run that nothing else took up ends as it had."""
    course.manual_retries -= taken_back
    is_as_it_was = course.manual_retries == was.run_manual_retries
    if is_as_it_was:
        course.manual_at = was.run_manual_at
    for action in advance(course.definition, course.facts(courses.now)):
        if isinstance(action, Finish) and is_as_it_was and was.run_finished_at is not None:
            # That end is in the log already; to tell it again would call hooks again.
            course.state, course.finished_at = action.state, was.run_finished_at
        else:
            courses.apply(course, action)
