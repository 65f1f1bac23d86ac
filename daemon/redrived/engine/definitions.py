"""The config as the engine uses it: one immutable picture, replaced whole by a reload."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Literal

from msgspec.structs import asdict, replace

from redrive.clock import SECOND
from redrive.config.sections import Config, Queue, Task
from redrive.config.values import parse_rate
from redrive.errors import NotFound
from redrive.models import Budgets, Job
from redrive.pipelines.definition import inline_name
from redrive.policy import RetryPolicy, resolve
from redrive.rules import Rulebook
from redrive.templates import key_of
from redrived.store.catalog import Entry
from redrived.store.picking import QueueRules

COMMANDS = " commands"  # no pool can be called so

Kind = Literal["python", "command", "http"]


class TaskDefinition:
    """A task, with everything about it that can be worked out once."""

    def __init__(self, name: str, task: Task, config: Config) -> None:
        self.name = name
        self.task = task
        self.kind: Kind = "python" if task.python else "command" if task.command else "http"
        self.policy: RetryPolicy = resolve(task.retry, config.retry)
        self.cwd = task.cwd or config.folder
        self.rate = parse_limit(task.rate)

    @property
    def pool(self) -> str | None:
        return self.task.pool if self.kind == "python" else None

    @property
    def berth(self) -> str | None:
        """Whose berths its jobs take: a pool's, the command slots'; None: a slot of their own."""
        return COMMANDS if self.kind == "command" else self.pool

    @property
    def is_limited(self) -> bool:
        """Whether it has a limit or a rate of its own, and so gets hands of one."""
        task = self.task
        own = task.concurrency or task.concurrency_key or task.rate or task.breaker
        return bool(own or self.process_limits)

    @cached_property
    def process_limits(self) -> Mapping[str, int]:
        """What a worker is held to while it runs one of its jobs; commands set their own."""
        if self.kind != "python":
            return {}
        limits = asdict(self.task.limits)
        del limits["output"]
        return {name: math.ceil(value) for name, value in limits.items() if value is not None}

    @cached_property
    def heartbeat_source(self) -> str:
        if self.task.heartbeat is not None and self.task.heartbeat.source is not None:
            return self.task.heartbeat.source
        return "job" if self.kind == "python" else "process"

    @property
    def stalled_after(self) -> float | None:
        """Seconds without a sign of life; None: only the process itself is watched."""
        if self.heartbeat_source == "process":
            return None
        return self.task.heartbeat.stalled_after if self.task.heartbeat else 120.0

    @property
    def beat_every(self) -> float:
        return self.task.heartbeat.dropped_within if self.task.heartbeat else 30.0

    @property
    def of_each_key(self) -> int | None:
        """How many of each key may run at once; None for a task without keys."""
        return None if self.task.concurrency_key is None else self.task.concurrency or 1

    def limit_key(self, args: Mapping[str, Any]) -> str | None:
        """The key whose jobs share this task's limits, or None for a task without keys."""
        if self.task.concurrency_key is None:
            return None
        return key_of(self.name, self.task.concurrency_key, args)


class Definitions:
    """Everything the config says, ready to be asked."""

    def __init__(self, config: Config, pipelines: Mapping[str, Entry] | None = None) -> None:
        self.config = config
        self.pipelines = pipelines or {}  # by the names that jobs pin
        brought = [entry.definition.tasks(entry.version) for entry in self.pipelines.values()]
        self.tasks = {
            name: TaskDefinition(name, task, config)
            for tasks in (config.tasks, *brought)
            for name, task in tasks.items()
        }
        self.rulebook = Rulebook(config.errors)
        self.queues = {"default": Queue(), **config.queues}
        self.queue_rules = {
            name: QueueRules(
                priority=queue.priority,
                reserved=queue.reserved,
                concurrency=queue.concurrency,
                rate=parse_limit(queue.rate),
            )
            for name, queue in self.queues.items()
        }

    def task(self, name: str) -> TaskDefinition:
        found = self.tasks.get(name)
        if found is None:
            raise NotFound(f"there is no task {name!r}", hint=nearest(name, self.tasks))
        return found

    def knows(self, task: str) -> bool:
        """Whether jobs of this task can be run at all."""
        return task in self.tasks

    def step_policy(self, pinned: str | None, step: str | None) -> RetryPolicy | None:
        """The policy of a step, as written in the version that its run has pinned."""
        entry = self.pipelines.get(pinned or "")
        if entry is None or step is None:
            return None
        return entry.definition.by_name[step].lane.policy

    def policy(self, name: str) -> RetryPolicy:
        """By the name of a policy or of a task: a config's, or `PIPELINE.STEP`, the newest first."""
        tables, steps = self.config.retry, self._policies_of_steps
        if name in tables or name == "default":
            return resolve(name, tables)
        if name in self.config.tasks:
            return self.tasks[name].policy
        if name in steps:
            return steps[name]
        known = {*tables, "default", *self.config.tasks, *steps}
        raise NotFound(f"there is no policy or task {name!r}", hint=nearest(name, known))

    @cached_property
    def _policies_of_steps(self) -> Mapping[str, RetryPolicy]:
        """By the names that the tasks of their jobs bear, and without the version."""
        policies: dict[str, RetryPolicy] = {}
        for entry in sorted(self.pipelines.values(), key=lambda entry: entry.version):
            for step in entry.definition.steps:
                policies[inline_name(entry.name, step.name, entry.version)] = step.lane.policy
                policies[f"{entry.name}.{step.name}"] = step.lane.policy
        return policies

    def budgeted(self, job: Job) -> Job:
        """With the limits of its budgets, which the config holds and the row does not."""
        definition = self.tasks.get(job.task)
        max_lost = definition.task.max_lost if definition else Budgets().max_lost
        most = self.config.manual_retry.max
        budgets = job.budgets or Budgets()
        if (budgets.max_lost, budgets.max_manual_retries) == (max_lost, most):
            return job
        return replace(job, budgets=replace(budgets, max_lost=max_lost, max_manual_retries=most))

    def queue(self, name: str) -> Queue:
        found = self.queues.get(name)
        if found is None:
            raise NotFound(f"there is no queue {name!r}", hint=nearest(name, self.queues))
        return found


def parse_limit(rate: str | None) -> tuple[int, int] | None:
    """A rate as count and microseconds."""
    if rate is None:
        return None
    parsed = parse_rate(rate)
    return parsed.count, round(parsed.per_seconds * SECOND)


def nearest(name: str, known: Iterable[str]) -> str:
    names = sorted(known)
    close = difflib.get_close_matches(name, names, 1)
    if close:
        return f"did you mean {close[0]!r}?"
    if not names:
        return "the config defines none"
    return f"there {'is' if len(names) == 1 else 'are'} {', '.join(names[:8])}{' …' if len(names) > 8 else ''}"
