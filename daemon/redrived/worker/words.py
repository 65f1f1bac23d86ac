"""What `redrive.current_job()` says and asks, on its way to the daemon."""

from __future__ import annotations

import time

from redrive.job import CurrentJob

from .outbox import Outbox


class Words:
    """The `redrive.job.Transport` of a worker."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox

    def beat(self, job: CurrentJob) -> None:
        now = time.time_ns() // 1000
        self._outbox.say("beat", job.id, job.lease, now, job.progress_made, job.metrics)

    def mark(self, job: CurrentJob, keys: list[str]) -> None:
        self._outbox.say("mark", job.id, job.lease, keys)

    def marked(self, job: CurrentJob) -> set[str]:
        """Asked for page by page: a long list does not fit into one frame."""
        keys: set[str] = set()
        after = None
        while True:
            page, after = self._outbox.ask(job.id, job.lease, "marked", after)
            keys.update(page)
            if after is None:
                return keys

    def once(self, job: CurrentJob, key: str) -> bool:
        first: bool = self._outbox.ask(job.id, job.lease, "once", key)
        return first
