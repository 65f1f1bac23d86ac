"""A run that says more than a message holds is told without what is longest in it.

What stands in its place says so. Nothing is lost: each job still has what its step returned,
measured and failed with.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from redrive.models import ErrorRecord, Run, StepState
from redrive.protocol.codec import encode_told
from redrive.protocol.envelope import ROOM

SHORT = 200  # bytes of a value, characters of a message: to leave out less would win nothing


def fitted(run: Run) -> Run:
    """With the steps that say most in short, as many of them as it takes; then the metrics."""
    over = _size(run) - ROOM
    if over <= 0:
        return run
    steps = list(run.steps)
    sizes = [_size(step) for step in steps]
    for place in sorted(range(len(steps)), key=sizes.__getitem__, reverse=True):
        if over <= 0:
            break
        steps[place] = _in_short(steps[place])
        over -= sizes[place] - _size(steps[place])
    metrics = run.metrics if over <= 0 else _left_out(run.metrics, "each job tells its own")
    return replace(run, steps=steps, metrics=metrics)


def _in_short(step: StepState) -> StepState:
    error = step.error and _error_in_short(step.error)
    return replace(
        step, result=_left_out(step.result, f"`redrive show {step.job}` has them"), error=error
    )


def _error_in_short(error: ErrorRecord) -> ErrorRecord:
    message = error.message
    if len(message) > SHORT:
        message = f"… {message[-SHORT:]}"  # what went wrong stands at the end of it
    return replace(error, message=message, traceback=None)


def _left_out(value: Any, where: str) -> Any:
    size = _size(value)
    if size <= SHORT:
        return value
    return {"left_out": f"{size:,} bytes, {where}"}


def _size(value: Any) -> int:
    return len(encode_told(value))
