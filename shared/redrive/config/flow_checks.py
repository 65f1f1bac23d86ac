"""Checks on what starts and joins tasks: pipelines and schedules."""

from __future__ import annotations

from difflib import get_close_matches
from graphlib import CycleError, TopologicalSorter
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from redrive.config.lines import Key
from redrive.config.problems import Problems, instead, one_of
from redrive.config.relations import Names, exactly_one
from redrive.config.sections import Schedule, Step, Tables
from redrive.config.spoken import (
    OF_A_RUN,
    OF_A_SLOT,
    check_condition,
    check_names,
    check_templates,
    templates,
)
from redrive.config.task_checks import check_retry, policy_names, queue_names, task_names
from redrive.config.values import quoted

MOST_STEPS = 1_000  # of a pipeline: every run has as many rows, and is drawn and told as a whole
SLIP = 0.85  # how alike two names are when one is taken for the other, misspelt


def check_pipelines(tables: Tables, problems: Problems) -> None:
    for name, pipeline in tables.pipelines.items():
        check_steps(pipeline.steps, ("pipelines", name, "steps"), tables, problems)


def check_steps(steps: list[Step], key: Key, tables: Tables, problems: Problems) -> None:
    """The steps of one pipeline, wherever they are written; a task that is None is not ours."""
    if not steps:
        problems.doubt(key[:-1], "got no step, expected at least one")
        return
    if len(steps) > MOST_STEPS:
        problems.add(key, f"got {len(steps):,} steps, expected at most {MOST_STEPS:,}")
        return
    if not problems.inside(key):  # a step that was misread would seem to be missing
        _check_order(steps, key, problems)
    every = [step.name for step in steps]
    before = None if problems.inside(key) else _before(steps)
    tasks, queues, policies = task_names(tables), queue_names(tables), policy_names(tables)
    for place, step in enumerate(steps):
        at = (*key, place)
        tasks.refer(problems, (*at, "task"), step.task)
        tasks.refer(problems, (*at, "clear"), step.clear)
        queues.refer(problems, (*at, "queue"), step.queue)
        check_retry(step.retry, (*at, "retry"), policies, problems)
        _check_words(step, at, every, every if before is None else before[step.name], problems)


def _check_words(
    step: Step, at: Key, steps: list[str], before: list[str], problems: Problems
) -> None:
    """What `when` and the templates speak of must be there, and over when the step begins."""
    when = check_condition(step.when, (*at, "when"), OF_A_RUN, problems)
    if when is not None:
        _check_steps_named(when.parts, (*at, "when"), steps, before, problems)
    for key, template in templates(step.args, (*at, "args")):
        check_names(template.names, key, OF_A_RUN, problems)
        _check_steps_named(template.parts, key, steps, before, problems)


def _check_steps_named(
    parts: frozenset[tuple[str, str]],
    key: Key,
    steps: list[str],
    before: list[str],
    problems: Problems,
) -> None:
    for of, name in sorted(parts):
        if of != "steps" or name in before:
            continue
        if name in steps:
            expected = one_of(before) if before else "none, no step comes before this one"
            text = f"step {quoted(name)} need not be over by then, expected {expected}"
        else:
            text = f"unknown step {quoted(name)}, {instead(name, sorted(steps))}"
        problems.doubt(key, text)


def _check_order(steps: list[Step], key: Key, problems: Problems) -> None:
    first: dict[str, int] = {}
    for place, step in enumerate(steps):
        if step.name in first:
            text = f"{quoted(step.name)} is the name of {key[-1]}[{first[step.name]}], expected another"
            problems.add((*key, place, "name"), text)
        first.setdefault(step.name, place)
    names = Names("step", key, first)
    for place, step in enumerate(steps):
        for at, needed in enumerate(step.needs or []):
            names.refer(problems, (*key, place, "needs", at), needed)
    if not problems.inside(key):
        _check_for_circle(steps, key, problems)


def _check_for_circle(steps: list[Step], key: Key, problems: Problems) -> None:
    try:
        TopologicalSorter(_needs(steps)).prepare()
    except CycleError as found:
        circle: list[str] = found.args[1]
        text = f"the steps wait for each other, {' -> '.join(circle)}, expected no circle"
        place = [step.name for step in steps].index(circle[0])
        problems.add((*key, place), text)


def _needs(steps: list[Step]) -> dict[str, list[str]]:
    """A step without `needs` follows the step before it."""
    names = [step.name for step in steps]
    return {
        step.name: names[max(place - 1, 0) : place] if step.needs is None else step.needs
        for place, step in enumerate(steps)
    }


def _before(steps: list[Step]) -> dict[str, list[str]]:
    """For each step, which are over when it begins, in the order of the file."""
    needs = _needs(steps)
    before: dict[str, set[str]] = {}
    for name in TopologicalSorter(needs).static_order():
        before[name] = {*needs[name]}.union(*(before[need] for need in needs[name]))
    return {name: [each for each in needs if each in found] for name, found in before.items()}


def check_schedules(tables: Tables, problems: Problems) -> None:
    tasks, queues = task_names(tables), queue_names(tables)
    for name, schedule in tables.schedules.items():
        key: Key = ("schedules", name)
        exactly_one(problems, key, schedule, ("task", "pipeline"), ("cron", "every", "at"))
        tasks.refer(problems, (*key, "task"), schedule.task)
        queues.refer(problems, (*key, "queue"), schedule.queue)
        if schedule.pipeline is not None:
            _check_pipeline(schedule.pipeline, (*key, "pipeline"), tables, problems)
            if schedule.queue is not None:
                text = "the steps of a pipeline name their queues, expected it only beside `task`"
                problems.doubt((*key, "queue"), text)
            check_templates(schedule.batch, (*key, "batch"), OF_A_SLOT, problems)
        elif schedule.batch is not None:
            text = "only runs belong to a batch, expected it only beside `pipeline`"
            problems.doubt((*key, "batch"), text)
        _check_times(schedule, key, problems)


def _check_pipeline(name: str, key: Key, tables: Tables, problems: Problems) -> None:
    """What is not in the config may be a playbook, which only the daemon knows; or a slip."""
    known = tables.pipelines
    if name in known or problems.inside(("pipelines", name)):
        return
    for near in get_close_matches(name[:100], known, n=1, cutoff=SLIP):
        problems.doubt(key, f"unknown pipeline {quoted(name)}, did you mean {quoted(near)}?")


def _check_times(schedule: Schedule, key: Key, problems: Problems) -> None:
    if schedule.cron is not None:
        from redrive.cron import parse_cron  # only a config with a crontab line needs it

        try:
            parse_cron(schedule.cron)
        except ValueError as wrong:
            problems.add((*key, "cron"), str(wrong))
    try:
        ZoneInfo(schedule.timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        near = instead(schedule.timezone, sorted(available_timezones()))
        problems.add((*key, "timezone"), f"unknown time zone {quoted(schedule.timezone)}, {near}")
