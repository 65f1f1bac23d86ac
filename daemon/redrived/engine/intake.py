"""Requests for work become jobs: defaults filled in, names checked, limits held."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from redrive.config.sections import rank
from redrive.errors import RedriveError, UsageProblem
from redrive.orders import check_numbers, check_words, checked_args, due
from redrive.protocol.commands import Enqueue, JobOrder
from redrived.engine.definitions import Definitions, TaskDefinition
from redrived.store.enqueue import NewJob, Order

Wish = TypeVar("Wish")
Made = TypeVar("Made")

MOST_AT_ONCE = 100_000


def order(definitions: Definitions, request: Enqueue, by: str, now: int, **said: object) -> Order:
    """The jobs a request asks for; refused whole when one of them cannot be.

    What else is said goes into their first event.
    """
    task = definitions.task(request.task)
    if request.count < 1 or len(request.orders) * request.count > MOST_AT_ONCE:
        raise UsageProblem(
            f"{len(request.orders) * request.count} jobs cannot be enqueued at once",
            hint=f"between 1 and {MOST_AT_ONCE} in one request",
        )
    jobs = each(request.orders, lambda wish: new_job(definitions, task, wish, now))
    return Order(jobs=jobs * request.count, by=by, data=said)


def each(wishes: Sequence[Wish], make: Callable[[Wish], Made]) -> list[Made]:
    """What is made of each order in a request; a refusal says which of them it is about."""
    made: list[Made] = []
    try:
        for wish in wishes:
            made.append(make(wish))
    except RedriveError as error:
        error.order = len(made)
        raise
    return made


def new_job(
    definitions: Definitions, task: TaskDefinition, wish: JobOrder, now: int, **more: Any
) -> NewJob:
    queue = task.task.queue if wish.queue is None else wish.queue
    definitions.queue(queue)
    operation = task.task.operation if wish.operation is None else wish.operation
    check_words(("operation", operation), ("mode", wish.mode), ("unique key", wish.unique))
    check_numbers(wish)
    args = checked_args(wish.args)
    available_at = due(wish, now)
    return NewJob(
        task=task.name,
        queue=queue,
        args=args,
        operation=operation,
        mode=wish.mode,
        priority=task.task.priority if wish.priority is None else wish.priority,
        rank=rank(definitions.queues, queue, operation),
        max_attempts=task.policy.max_attempts,
        available_at=available_at,
        scheduled_for=available_at,
        unique=wish.unique,
        limit_key=task.limit_key(wish.args),
        held=wish.hold,
        **more,
    )


def check_ids(ids: Sequence[str]) -> list[int]:
    """Ids of jobs as people write them."""
    bad = [id for id in ids if not re.fullmatch(r"[0-9]{1,18}", id)]
    if bad:
        raise UsageProblem(f"{bad[0][:40]!r} is not a job's id", hint="ids are numbers, as in `12`")
    return [int(id) for id in ids]
