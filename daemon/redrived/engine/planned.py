"""A schedule of the config with its times worked out, and what each slot of it starts."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from msgspec import Struct

from redrive.config.sections import Schedule
from redrive.instants import iso, to_datetime
from redrive.protocol.commands import JobOrder
from redrive.schedules import Timing
from redrive.templates import render
from redrived.engine import intake
from redrived.store.enqueue import Order
from redrived.store.runs import NewRun, RunOrder
from redrived.store.unit import to_json

if TYPE_CHECKING:
    from redrived.engine.engine import Engine


class Planned(Struct, frozen=True):
    name: str
    schedule: Schedule
    timing: Timing

    @property
    def digest(self) -> str:
        """Of its times: with other times it begins anew."""
        plan = self.schedule
        times = (plan.cron, plan.every, plan.at and plan.at.isoformat(), plan.timezone)
        return hashlib.sha256(repr(times).encode()).hexdigest()

    @property
    def what(self) -> str:
        plan = self.schedule
        return f"pipeline {plan.pipeline}" if plan.pipeline else f"task {plan.task}"

    def next_slots(self, now: int, n: int) -> list[int]:
        found: list[int] = []
        at = self.timing.next_after(now)
        while at is not None and len(found) < n:
            found.append(at)
            at = self.timing.next_after(at)
        return found

    def order(self, engine: Engine, slot: int, by: str | None = None) -> Order | RunOrder:
        """What a slot starts, by the definitions of now."""
        plan = self.schedule
        asked_by = by or f"schedule {self.name}"
        if plan.pipeline is not None:
            latest = engine.pipelines.latest(plan.pipeline)
            return RunOrder(
                definition=latest.definition,
                version=latest.version,
                runs=[NewRun(args=to_json(plan.args), batch=self._batch(slot))],
                mode=latest.definition.mode or "auto",
                by=asked_by,
            )
        task = engine.definitions.task(plan.task or "")
        wish = JobOrder(args=plan.args, queue=plan.queue, mode="auto")
        job = intake.new_job(engine.definitions, task, wish, engine.clock.now())
        return Order(jobs=[job], by=asked_by)

    def _batch(self, slot: int) -> str | None:
        """The batch of a slot: a template over `schedule`, `slot` and `date`."""
        if self.schedule.batch is None:
            return None
        local = to_datetime(slot).astimezone(self.timing.zone)
        facts = {"schedule": self.name, "slot": iso(slot), "date": f"{local:%Y-%m-%d}"}
        return str(render(self.schedule.batch, facts))
