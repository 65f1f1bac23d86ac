"""Requests for work become jobs: defaults filled in, names checked, limits held."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from redrive.clock import SECOND
from redrive.errors import UsageProblem
from redrive.protocol.commands import Enqueue, JobOrder
from redrived.engine.definitions import Definitions, TaskDefinition
from redrived.store.enqueue import NewJob, Order
from redrived.store.unit import to_json

LARGEST_ARGS = 1024 * 1024  # bytes of JSON
MOST_AT_ONCE = 100_000

LONGEST_DELAY = 100 * 366 * 86400  # seconds
_WORD = re.compile(r"[^\x00-\x1f\x7f]{1,200}")


def order(definitions: Definitions, request: Enqueue, by: str, now: int) -> Order:
    """The jobs a request asks for; refused whole when one of them cannot be."""
    task = definitions.task(request.task)
    if request.count < 1 or len(request.orders) * request.count > MOST_AT_ONCE:
        raise UsageProblem(
            f"{len(request.orders) * request.count} jobs cannot be enqueued at once",
            hint=f"between 1 and {MOST_AT_ONCE} in one request",
        )
    jobs = [new_job(definitions, task, wish, now) for wish in request.orders]
    return Order(jobs=jobs * request.count, by=by)


def new_job(
    definitions: Definitions, task: TaskDefinition, wish: JobOrder, now: int, **more: Any
) -> NewJob:
    queue = wish.queue or task.task.queue
    definitions.queue(queue)
    operation = wish.operation or task.task.operation
    check_words(("operation", operation), ("mode", wish.mode), ("unique key", wish.unique))
    args = checked_args(wish.args)
    due = _due(wish, now)
    return NewJob(
        task=task.name,
        queue=queue,
        args=args,
        operation=operation,
        mode=wish.mode,
        priority=task.task.priority if wish.priority is None else wish.priority,
        rank=definitions.rank(queue, operation),
        max_attempts=task.policy.max_attempts,
        available_at=due,
        scheduled_for=due,
        unique=wish.unique,
        limit_key=task.limit_key(wish.args),
        held=wish.hold,
        **more,
    )


def check_words(*words: tuple[str, str | None]) -> None:
    """Refuse what cannot be a word of the caller's own; each comes with what it is."""
    for what, word in words:
        if word is not None and not _WORD.fullmatch(word):
            raise UsageProblem(
                f"the {what} {word[:50]!r} cannot be used",
                hint="1 to 200 characters, none of them a control character",
            )


def checked_args(args: dict[str, Any]) -> str:
    """Arguments as JSON, unless they are too large."""
    written = to_json(args)
    if len(written) > LARGEST_ARGS:
        raise UsageProblem(
            f"the arguments take {len(written)} bytes, more than {LARGEST_ARGS}",
            hint="put large data in a file or a database and pass where it is",
        )
    return written


def _due(wish: JobOrder, now: int) -> int | None:
    if wish.delay is not None and wish.at is not None:
        raise UsageProblem("both a delay and a time were given", hint="give one of them")
    if wish.delay is not None:
        if not 0 <= wish.delay <= LONGEST_DELAY:
            raise UsageProblem(f"a delay of {wish.delay} s is not possible", hint="0 s or more")
        return now + round(wish.delay * SECOND)
    return wish.at


def check_ids(ids: Sequence[str]) -> list[int]:
    """Ids of jobs as people write them."""
    bad = [id for id in ids if not re.fullmatch(r"[0-9]{1,18}", id)]
    if bad:
        raise UsageProblem(f"{bad[0][:40]!r} is not a job's id", hint="ids are numbers, as in `12`")
    return [int(id) for id in ids]
