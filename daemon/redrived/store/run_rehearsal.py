"""What operators would do to runs: the refusals of `run_actions`, and nothing changed."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from sqlalchemy import Connection

from redrive.errors import RedriveError
from redrive.pipelines.advance import descendants
from redrive.pipelines.states import UNSETTLED
from redrived.store import actions
from redrived.store.database import Database
from redrived.store.run_actions import (
    RunAct,
    act_on_jobs,
    beginning,
    check_running,
    check_some,
    live_jobs,
    missing,
    undiscardable,
)
from redrived.store.run_rows import Course, load
from redrived.store.unit import Unit


class Rehearsed(Struct, frozen=True, kw_only=True):
    """What would become of one run: of which steps, and of which of its jobs."""

    id: int
    steps: Sequence[str] = ()
    jobs: Sequence[int] = ()
    spared: Sequence[int] = ()
    refused: RedriveError | None = None


def rehearse(connection: Connection, database: Database, now: int, wish: RunAct) -> list[Rehearsed]:
    """What `act_on_runs` would do now."""
    unit = Unit(connection, database, "", now)
    courses = {course.id: course for course in load(unit, wish.runs, locked=False)}
    return [_rehearse(unit, wish, id, courses.get(id)) for id in wish.runs]


def _rehearse(unit: Unit, wish: RunAct, id: int, course: Course | None) -> Rehearsed:
    if course is None:
        return Rehearsed(id=id, refused=missing())
    try:
        meant, jobs = _meant(unit, wish, course)
    except RedriveError as refused:
        return Rehearsed(id=id, spared=sorted(_jobs(course)), refused=refused)
    return Rehearsed(
        id=id,
        steps=[name for name in course.steps if name in meant],
        jobs=sorted(jobs),
        spared=sorted(_jobs(course) - jobs),
    )


def _meant(unit: Unit, wish: RunAct, course: Course) -> tuple[set[str], set[int]]:
    """The steps and the jobs that a verb would change; raises why it would change none."""
    rows = course.steps
    match wish.verb:
        case "requeue":
            names = beginning(unit, wish, course)
            names |= descendants(course.definition, names)
            return names, {job for name in names if (job := rows[name].job) is not None}
        case "cancel" | "kill":
            check_running(wish, course)
            names = {name for name, row in rows.items() if row.state in UNSETTLED}
            return names, set(live_jobs(course))
        case "discard":
            raise undiscardable()
        case _:
            check_running(wish, course)
            act = act_on_jobs(wish, live_jobs(course))
            acted = actions.rehearse(unit.connection, unit.database, unit.now, act)
            check_some(acted)
            jobs = {each.id for each in acted if each.refused is None}
            return {name for name, row in rows.items() if {row.job, row.clearing} & jobs}, jobs


def _jobs(course: Course) -> set[int]:
    latest = {job for row in course.steps.values() if (job := row.job) is not None}
    return latest | set(live_jobs(course))
