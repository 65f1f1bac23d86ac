"""Runs of one pipeline on a real store, a line for each thing that happens to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from redrive.clock import SECOND
from redrive.config.sections import Config, Pipeline, Step, Task
from redrive.lifecycle import JobState
from redrive.models import Run
from redrive.pipelines import Definition, define
from redrived.store import run_pages
from redrived.store.catalog import Registration, register
from redrived.store.gates import Opened, open_gates
from redrived.store.picking import InHand
from redrived.store.promote import promote
from redrived.store.run_actions import RunAct, RunActed, act_on_runs
from redrived.store.run_pages import RunsPage
from redrived.store.runs import Begun, NewRun, RunOrder, start
from redrived.store.settle import complete, end
from support.ground import Ground


def step(name: str, **more: Any) -> Step:
    return Step(**{"name": name, "task": "work", **more})


def seconds(n: float) -> int:
    return round(n * SECOND)


CONFIG = Config(tasks={"work": Task(command=["true"]), "other": Task(command=["true"])})


class Track:
    def __init__(self, ground: Ground, *steps: Step, config: Config = CONFIG, **more: Any) -> None:
        self.ground = ground
        self.definition: Definition = define("p", Pipeline(steps=list(steps), **more), config)
        entry = ground.do(register, Registration(definition=self.definition, source=""))
        self.version = entry.version

    def order(self, runs: Sequence[NewRun]) -> RunOrder:
        return RunOrder(definition=self.definition, version=self.version, runs=runs, by="ann")

    def start(self, args: dict[str, Any] | None = None, **more: Any) -> int:
        run = NewRun(args=msgspec.json.encode(args or {}).decode(), **more)
        [begun] = self.ground.do(start, self.order([run]))
        return begun.id

    def start_many(self, n: int, **more: Any) -> list[Begun]:
        return self.ground.do(start, self.order([NewRun(**more)] * n))

    # ---- what happens to jobs --------------------------------------------------------------

    def take(self, name: str) -> InHand:
        [job] = self.ground.take()
        assert job.step == name, f"{job.step} was leased, not {name}"
        return job

    def finish(self, name: str, result: Any = None, metrics: Any = None) -> None:
        self.complete([self.take(name)], result, metrics)

    def complete(self, jobs: Sequence[InHand], result: Any = None, metrics: Any = None) -> None:
        done = [
            self.ground.completed(job)._replace(
                run_id=job.run_id,
                result=None if result is None else msgspec.json.encode(result).decode(),
                metrics=None if metrics is None else msgspec.json.encode(metrics).decode(),
            )
            for job in jobs
        ]
        self.ground.do(complete, done)

    def fail(self, name: str, *, retry_in: float | None = None, **more: Any) -> None:
        self.fail_job(self.take(name), retry_in=retry_in, **more)

    def fail_job(self, job: InHand, *, retry_in: float | None = None, **more: Any) -> None:
        self.ground.fail(job, retry_in=retry_in, run_id=job.run_id, **more)

    def cancelled(self, job: InHand) -> None:
        more: dict[str, Any] = {"run_id": job.run_id, "events": [("job_cancelled", {})]}
        self.ground.do(end, self.ground.ended(job, JobState.CANCELLED, **more))

    def promote(self) -> None:
        self.ground.do(promote, 100_000)

    def open_gates(self, limit: int = 500) -> Opened:
        return self.ground.do(open_gates, limit)

    # ---- what is done to runs --------------------------------------------------------------

    def do(self, verb: str, run: int, **more: Any) -> RunActed:
        wish = RunAct(verb=verb, runs=[run], by="ann", **more)
        [acted] = self.ground.do(act_on_runs, wish)
        if acted.refused is not None:
            raise acted.refused
        return acted

    def requeue(self, run: int, **more: Any) -> RunActed:
        return self.do("requeue", run, **more)

    # ---- what can be seen ------------------------------------------------------------------

    def run(self, id: int) -> Run:
        found = self.ground.ask(run_pages.get, id)
        assert found is not None, f"no run {id}"
        return found

    def states(self, id: int) -> dict[str, str]:
        return {each.name: each.state for each in self.run(id).steps}

    def told(self, id: int) -> list[str]:
        return [event.type for event in self.ground.events() if event.run == f"r{id}"]

    def page(self, where: str = "", **more: Any) -> RunsPage:
        return self.ground.ask(run_pages.listed, where, self.ground.clock.now(), **more)
