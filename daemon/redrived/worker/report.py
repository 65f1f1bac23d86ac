"""How an attempt ended, as the line of JSON that the daemon reads.

`[id, lease, began, took, outcome, result, wrote, metrics, progress, failure, goes_on]`, times in
microseconds; what is left out at the end is done, null, nothing. A job that did its work in
silence costs thirty characters.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import Any, cast

from redrive.job import RESULT_AT_MOST, CurrentJob
from redrive.outcomes import Cancelled, Permanent, Snooze, Transient

from .failure import describe
from .hand import ID, LEASE, TASK, Row
from .outbox import encode
from .stale import Stale

NESTED_AT_MOST = 100  # what others read recursively must not run out of stack


def report(
    row: Row,
    began: int,
    took: int,
    wrote: bool,
    job: CurrentJob | None,
    value: Any,
    error: BaseException | None,
    interrupted: bool,
    goes_on: bool,
) -> str:
    metrics = progress = failure = None
    if job is not None:
        metrics, progress = job.metrics, job.progress_made
    outcome, result = "done", "null"
    if error is not None:
        outcome, failure = _ended_by(error, interrupted)
    elif value is not None:
        result, problem = _as_json(row[TASK], value)
        if problem:
            outcome, failure = "permanent", problem
    elif not wrote and metrics is None and progress is None and not goes_on:
        return f"[{row[ID]},{row[LEASE]},{began},{took}]"
    rest = encode([wrote, metrics, progress, failure, goes_on])
    return f'[{row[ID]},{row[LEASE]},{began},{took},"{outcome}",{result},{rest[1:]}'


def _ended_by(error: BaseException, interrupted: bool) -> tuple[str, dict[str, Any]]:
    failure = describe(error)
    # By name: asyncio is only loaded where a handler needs it.
    stopped = interrupted and type(error).__name__ == "CancelledError"
    if stopped or isinstance(error, Cancelled):
        return "cancelled", failure
    if isinstance(error, Stale):
        return "stale", failure
    if isinstance(error, Permanent):
        return "permanent", {**failure, "type": _text(error.type)}
    if isinstance(error, Transient):
        after = None if error.retry_after is None else float(error.retry_after)
        return "transient", {**failure, "type": _text(error.type), "retry_after": after}
    if isinstance(error, Snooze):
        return "snoozed", {**failure, "until": _instant(error.until)}
    return "failed", failure


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _instant(until: datetime | timedelta | float) -> int:
    if isinstance(until, datetime):
        return int(until.timestamp() * 1_000_000)
    seconds = until.total_seconds() if isinstance(until, timedelta) else until
    return int((time.time() + seconds) * 1_000_000)


def _as_json(task: str, value: Any) -> tuple[str, dict[str, Any] | None]:
    """The result as JSON, or what is wrong with it: trying again would not help."""
    try:
        text = encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        return "null", _unfit(f"{task} returned what JSON cannot hold ({error}); return plain data")
    # Counting is cheap, and what has few brackets cannot be deep.
    if text.count("[") + text.count("{") > NESTED_AT_MOST and _is_deep(value, NESTED_AT_MOST):
        return "null", _unfit(f"the result of {task} is nested too deeply; return flatter data")
    size = len(text.encode("utf-8", "replace"))
    if size > RESULT_AT_MOST:
        return "null", _unfit(
            f"the result of {task} is {size} bytes of JSON, more than {RESULT_AT_MOST}; "
            "store it elsewhere and return where"
        )
    return text, None


def _is_deep(value: Any, levels: int) -> bool:
    if isinstance(value, dict):
        value = list(cast("dict[str, Any]", value).values())
    elif not isinstance(value, (list, tuple)):
        return False
    return levels == 0 or any(_is_deep(item, levels - 1) for item in cast("list[Any]", value))


def _unfit(message: str) -> dict[str, Any]:
    return {"names": [], "message": message, "traceback": None, "type": "invalid_result"}
