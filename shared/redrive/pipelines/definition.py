"""A pipeline as the catalog stores it: nothing left open, so that a run can pin it.

What a step takes from the config (its queue and place there, its retry policy) is looked up
once, when the definition is made, and another answer makes another version. A step that says
itself what to run (`type:` in a playbook) brings its task along; its jobs bear the name
PIPELINE.STEP@VERSION, because two versions may run two different things.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cached_property, lru_cache
from graphlib import TopologicalSorter
from typing import Any, Literal

import msgspec
from msgspec import Struct

from redrive.config.sections import Config, Pipeline, Shows, Task
from redrive.config.sections import Step as WrittenStep
from redrive.policy import RetryPolicy, resolve

Origin = Literal["config", "playbook"]


class Lane(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the jobs of a task go, and what they get."""

    task: str
    queue: str
    operation: str | None = None
    priority: int = 0
    concurrency_key: str | None = None
    policy: RetryPolicy = RetryPolicy()


class Step(Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    needs: tuple[str, ...] = ()
    lane: Lane
    inline: Task | None = None  # what to run, when the definition says so itself
    args: dict[str, Any] | None = None  # templates; None: the run's own
    when: str | None = None
    delay: float = 0.0
    gate: bool = False
    retry_together: bool = False
    clear: Lane | None = None
    shows: Shows | None = None

    @property
    def joins_batch(self) -> bool:
        """Whether it waits for, or together with, the other runs of its batch."""
        return self.gate or self.retry_together


class Definition(Struct, frozen=True, kw_only=True, omit_defaults=True, dict=True):
    name: str
    steps: tuple[Step, ...]
    shows: Shows | None = None
    mode: str | None = None
    origin: Origin = "config"

    @cached_property
    def by_name(self) -> Mapping[str, Step]:
        return {step.name: step for step in self.steps}

    @cached_property
    def in_order(self) -> tuple[Step, ...]:
        """Every step behind those it needs."""
        needs = {step.name: step.needs for step in self.steps}
        return tuple(self.by_name[name] for name in TopologicalSorter(needs).static_order())

    def tasks(self, version: int) -> dict[str, Task]:
        """The tasks that this version brings along, by the names their jobs bear."""
        return {
            inline_name(self.name, step.name, version): step.inline
            for step in self.steps
            if step.inline is not None
        }


def define(
    name: str,
    pipeline: Pipeline,
    config: Config,
    inline: Mapping[str, Task] | None = None,
) -> Definition:
    """The definition of a checked pipeline; `inline` are the tasks of steps that bring one."""
    inline = inline or {}
    return Definition(
        name=name,
        steps=tuple(
            _step(step, pipeline.steps[place - 1] if place else None, config, inline)
            for place, step in enumerate(pipeline.steps)
        ),
        shows=pipeline.shows,
        mode=pipeline.mode,
        origin="playbook" if name not in config.pipelines else "config",
    )


def _step(
    step: WrittenStep, before: WrittenStep | None, config: Config, inline: Mapping[str, Task]
) -> Step:
    brought = inline.get(step.name)
    task = brought or config.tasks[step.task]
    retry = task.retry if step.retry is None else step.retry
    return Step(
        name=step.name,
        needs=tuple(([before.name] if before else []) if step.needs is None else step.needs),
        lane=_lane(step.task, task, config, retry, queue=step.queue, operation=step.operation),
        inline=brought and msgspec.structs.replace(brought, retry=None),
        args=step.args,
        when=step.when,
        delay=step.delay,
        gate=step.gate is not None,
        retry_together=step.retry_together,
        clear=_lane(step.clear, config.tasks[step.clear], config) if step.clear else None,
        shows=step.shows,
    )


def _lane(
    name: str,
    task: Task,
    config: Config,
    retry: Any = None,
    *,
    queue: str | None = None,
    operation: str | None = None,
) -> Lane:
    return Lane(
        task=name,
        queue=queue or task.queue,
        operation=operation or task.operation,
        priority=task.priority,
        concurrency_key=task.concurrency_key,
        policy=resolve(task.retry if retry is None else retry, config.retry),
    )


def inline_name(pipeline: str, step: str, version: int) -> str:
    return f"{pipeline}.{step}@{version}"


def pinned_name(pipeline: str, version: int) -> str:
    return f"{pipeline}@{version}"


def encode(definition: Definition) -> str:
    return msgspec.json.encode(definition).decode()


@lru_cache(maxsize=512)
def decode(text: str) -> Definition:
    """A stored definition; the same text is read once."""
    return msgspec.json.decode(text, type=Definition)


def digest(text: str) -> str:
    """What tells one version from the next."""
    return hashlib.sha256(text.encode()).hexdigest()
