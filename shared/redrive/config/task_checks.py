"""Checks on tasks and on what becomes of their failures: policies, error rules, hooks."""

from __future__ import annotations

import re
import signal
from typing import TypeVar, cast

from msgspec.structs import fields

from redrive.config.lines import Key
from redrive.config.problems import Problems, instead
from redrive.config.relations import Names, exactly_one
from redrive.config.sections import ErrorRule, Heartbeat, HttpCall, Retry, Tables, Task
from redrive.config.spoken import (
    OF_A_FAILURE,
    OF_A_HOOK,
    OF_A_JOB,
    OF_A_KEY,
    check_call_templates,
    check_condition,
    check_templates,
)
from redrive.config.values import format_duration, quoted
from redrive.event_types import EVENT_TYPES, REDRIVE_PREFIX

T = TypeVar("T")

HOOK_WORDS = ("dead", "stalled", "poison")

_STATUS = re.compile(r"[1-5](?:[0-9]{2}|xx)", re.IGNORECASE)
_MATCHERS = ("exception", "match", "exit_code", "signal", "status", "task")


def task_names(tables: Tables) -> Names:
    return Names("task", ("tasks",), tables.tasks)


def queue_names(tables: Tables) -> Names:
    """A queue must be written down: a typo would be a lane without limits."""
    return Names("queue", ("queues",), tables.queues, "default")


def policy_names(tables: Tables) -> Names:
    return Names("retry policy", ("retry",), tables.retry, "default")


def check_policies(tables: Tables, problems: Problems) -> None:
    for name, retry in tables.retry.items():
        check_policy(retry, ("retry", name), problems)


def check_retry(
    retry: bool | int | str | Retry | None, key: Key, policies: Names, problems: Problems
) -> None:
    match retry:
        case str():
            policies.refer(problems, key, retry)
        case Retry():
            check_policy(retry, key, problems)
        case _:
            pass


def check_policy(retry: Retry, key: Key, problems: Problems) -> None:
    if retry.delays is not None and retry.backoff is not None:
        problems.add((*key, "delays"), "got delays and backoff, expected only one of them")
    if retry.delays == []:
        problems.doubt((*key, "delays"), "got no delay, expected at least one")
    if retry.backoff and retry.backoff.cap < retry.backoff.first:
        first = format_duration(retry.backoff.first)
        text = f"got {format_duration(retry.backoff.cap)}, expected at least `first`, {first}"
        problems.doubt((*key, "backoff", "cap"), text)
    for name in ("stop_when", "retry_when"):
        check_condition(getattr(retry, name), (*key, name), OF_A_FAILURE, problems)


def check_errors(tables: Tables, problems: Problems) -> None:
    tasks = task_names(tables)
    for place, rule in enumerate(tables.errors):
        key: Key = ("errors", place)
        if all(getattr(rule, name) is None for name in _MATCHERS):
            problems.doubt(
                key,
                f"matches nothing in particular, expected at least one of {', '.join(_MATCHERS)}",
            )
        for at, name in _each((*key, "task"), rule.task):
            tasks.refer(problems, at, name)
        _check_evidence(rule, key, problems)


def _check_evidence(rule: ErrorRule, key: Key, problems: Problems) -> None:
    signals = [known.name for known in signal.Signals]
    for at, name in _each((*key, "signal"), rule.signal):
        if "SIG" + name.upper().removeprefix("SIG") not in signals:
            problems.add(at, f"unknown signal {quoted(name)}, {instead(name, signals)}")
    for at, status in _each((*key, "status"), rule.status):
        if not _STATUS.fullmatch(str(status)):
            text = f'got {quoted(status)}, expected an HTTP status such as 503 or "5xx"'
            problems.add(at, text)


def check_tasks(tables: Tables, problems: Problems) -> None:
    for name, task in tables.tasks.items():
        check_task(task, ("tasks", name), tables, problems)


def check_task(task: Task, key: Key, tables: Tables, problems: Problems) -> None:
    """A task, wherever it is written."""
    _check_action(task, key, problems)
    pools = Names("pool", ("pools",), tables.pools, "default")
    pools.refer(problems, (*key, "pool"), task.pool)
    queue_names(tables).refer(problems, (*key, "queue"), task.queue)
    check_retry(task.retry, (*key, "retry"), policy_names(tables), problems)
    if task.heartbeat:
        _check_heartbeat(task, task.heartbeat, (*key, "heartbeat"), problems)


def _check_action(task: Task, key: Key, problems: Problems) -> None:
    exactly_one(problems, key, task, ("python", "command", "http"))
    if task.python is not None and not _is_callable_path(task.python):
        text = f'got {quoted(task.python)}, expected "package.module:function"'
        problems.add((*key, "python"), text)
    if task.command is not None:
        check_command(task.command, (*key, "command"), problems)
    if isinstance(task.command, list):  # a text is the shell's: arguments are its variables
        check_templates(task.command, (*key, "command"), OF_A_JOB, problems)
    check_templates(task.concurrency_key, (*key, "concurrency_key"), OF_A_KEY, problems)
    if task.http:
        check_call(task.http, (*key, "http"), OF_A_JOB, problems)
        _check_what_only_processes_have(task, key, problems)


def _check_what_only_processes_have(task: Task, key: Key, problems: Problems) -> None:
    """What would mean nothing is not taken in silence."""
    for limit in fields(task.limits):
        if getattr(task.limits, limit.name) != limit.default:
            text = "an HTTP call has no process, expected no limits; `http.max_response` bounds it"
            problems.add((*key, "limits", limit.name), text)
    for name in ("cwd", "env"):
        if getattr(task, name):
            problems.add((*key, name), "an HTTP call has no process, expected it left out")


def _check_heartbeat(task: Task, heartbeat: Heartbeat, key: Key, problems: Problems) -> None:
    if heartbeat.source is None and task.python is None:
        problems.doubt(key, '"from" is missing, expected "notify", "output" or "process"')
    if heartbeat.every is not None and heartbeat.stalled_after < 4 * heartbeat.every:
        text = (
            f"got {format_duration(heartbeat.stalled_after)}, expected at least 4 times "
            f"`every`, {format_duration(4 * heartbeat.every)}"
        )
        problems.doubt((*key, "stalled_after"), text)
    if task.http and heartbeat.source in ("job", "notify", "output"):
        text = f'an HTTP call cannot beat, got {quoted(heartbeat.source)}, expected "process"'
        problems.add((*key, "from"), text)
    if task.command and heartbeat.source == "job":
        text = 'only Python tasks have a job to beat, expected "notify", "output" or "process"'
        problems.add((*key, "from"), text)


def check_hooks(tables: Tables, problems: Problems) -> None:
    known = (*HOOK_WORDS, *EVENT_TYPES)
    for place, hook in enumerate(tables.hooks):
        key: Key = ("hooks", place)
        exactly_one(problems, key, hook, ("command", "http"))
        if hook.on == []:
            problems.doubt((*key, "on"), "got nothing, expected at least one type of event")
        for at, name in enumerate(hook.on or []):
            if name not in known and not name.startswith(REDRIVE_PREFIX):
                text = f"unknown type of event {quoted(name)}, {instead(name, known)}"
                problems.add((*key, "on", at), text)
        if hook.command is not None:
            check_command(hook.command, (*key, "command"), problems)
        if hook.http:
            check_call(hook.http, (*key, "http"), OF_A_HOOK, problems)


def check_command(command: str | list[str], key: Key, problems: Problems) -> None:
    program = command if isinstance(command, str) else "".join(command[:1])
    if not program.strip():
        problems.doubt(key, "names no program, expected one")


def check_call(call: HttpCall, key: Key, facts: tuple[str, ...], problems: Problems) -> None:
    if problems.inside(key):
        return
    if not call.url.startswith(("http://", "https://", "{{")):
        text = f"got {quoted(call.url)}, expected an http:// or https:// address"
        problems.add((*key, "url"), text)
    if call.json is not None and call.body is not None:
        problems.add((*key, "body"), "got json and body, expected only one of them")
    check_call_templates(call, key, facts, problems)


def _each(key: Key, written: T | list[T] | None) -> list[tuple[Key, T]]:
    """Every item with its place, whether one was written or a list."""
    if isinstance(written, list):
        items = cast(list[T], written)
        return [((*key, place), item) for place, item in enumerate(items)]
    return [] if written is None else [(key, written)]


def _is_callable_path(text: str) -> bool:
    module, _, function = text.partition(":")
    return all(part.isidentifier() for part in (*module.split("."), *function.split(".")))
