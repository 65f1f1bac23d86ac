"""Schedules: when they fire and have fired, and firing one now."""

from __future__ import annotations

from redrive.protocol.commands import Done, Trigger
from redrive.protocol.queries import ListSchedules, SchedulePage
from redrived.api.server import Asker
from redrived.engine.engine import Engine
from redrived.store import events

MOST = 100  # next fires worked out for each schedule


async def list_schedules(engine: Engine, asker: Asker, request: ListSchedules) -> SchedulePage:
    rows = await engine.timetable.rows(max(0, min(request.next, MOST)))
    return SchedulePage(schedules=rows, as_of=await engine.store.read(events.head))


async def trigger(engine: Engine, asker: Asker, request: Trigger) -> Done:
    fired = await engine.timetable.trigger(request.schedule, asker.who)
    what = f"job {fired.job}" if fired.job is not None else f"r{fired.run}"
    data = {"job": fired.job} if fired.job is not None else {"run": f"r{fired.run}"}
    return Done(text=f"schedule {request.schedule} has started {what}", data=data)
