"""What templates and conditions may ask about a job.

Its arguments come from a row, and a row may have been written by anybody: one that cannot be
read costs its own job.
"""

from __future__ import annotations

from typing import Any

import msgspec

from redrive.errors import RedriveError
from redrived.store.picking import InHand

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class UnreadableArguments(RedriveError):
    """A row does not say what its job is to be run with."""


def facts_of(job: InHand) -> dict[str, Any]:
    return {
        "args": arguments_of(job),
        "job": job.id,
        "task": job.task,
        "queue": job.queue,
        "attempt": job.attempt,
        "max_attempts": job.max_attempts,
        "run": None if job.run_id is None else f"r{job.run_id}",
        "step": job.step,
        "batch": job.batch,
    }


def arguments_of(job: InHand) -> dict[str, Any]:
    try:
        return _decode(job.args)
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError) as problem:
        raise UnreadableArguments(
            f"the arguments in its row are no JSON object: {problem}",
            hint=f"correct `args` of job {job.id} in the store and requeue it, or discard it",
        ) from problem
