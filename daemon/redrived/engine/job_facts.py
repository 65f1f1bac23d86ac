"""What templates and conditions may ask about a job."""

from __future__ import annotations

from typing import Any

import msgspec

from redrived.store.picking import InHand


def facts_of(job: InHand) -> dict[str, Any]:
    return {
        "args": msgspec.json.decode(job.args),
        "job": job.id,
        "task": job.task,
        "queue": job.queue,
        "attempt": job.attempt,
        "max_attempts": job.max_attempts,
        "run": None if job.run_id is None else f"r{job.run_id}",
        "step": job.step,
        "batch": job.batch,
    }
