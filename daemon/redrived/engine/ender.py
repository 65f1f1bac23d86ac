"""Ends running attempts: what is noticed or asked is written down first, then acted on."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from redrive.clock import Clock
from redrived.engine.attempt import Attempt, Ending
from redrived.store.notice import Notice, notice
from redrived.store.store import Store

MOST_WISHES = 10_000  # hands hold fewer jobs: beyond them the oldest came to nothing long ago

_NOTICED = {Ending.STALLED: "action_stalled", Ending.TIMEOUT: "action_timeout"}


class Ender:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        # Ends asked for while the job lay unbegun in a worker's hand: it may begin all the same.
        self._wishes: dict[int, tuple[int, Ending, str]] = {}

    def end(self, attempt: Attempt, why: Ending, by: str | None = None) -> None:
        """Begin to end an attempt; its settlement follows once its processes are gone."""
        if not attempt.mark(why, by):
            return
        attempt.ending_since = self._clock.now()
        if why in _NOTICED:
            definition = attempt.definition
            limit = definition.stalled_after if why is Ending.STALLED else definition.task.timeout
            self._note(attempt, _NOTICED[why], {"after": limit}, ending=why)
        # Who floods the disk would go on flooding it.
        at_once = why in (Ending.KILL, Ending.LOG_LIMIT)
        grace = 0.0 if at_once else attempt.definition.task.grace
        attempt.executor.end(attempt, grace)

    def note_late(self, attempt: Attempt, silent_for: float) -> None:
        """Half of the silence it may keep has passed: a person may want to look."""
        told = {"silent_for": round(silent_for, 3), "after": attempt.definition.stalled_after}
        self._note(attempt, "heartbeat_late", told)

    def note_unkillable(self, attempt: Attempt) -> None:
        """SIGKILL does not end it, so its end may be long in coming: a person has to look."""
        self._note(attempt, "action_unkillable", {"unkillable": list(attempt.unkillable)})

    def wish(self, job: int, lease: int, why: Ending, by: str) -> None:
        """End the job should it begin before it has come back."""
        self._wishes.pop(job, None)
        self._wishes[job] = (lease, why, by)
        if len(self._wishes) > MOST_WISHES:
            del self._wishes[next(iter(self._wishes))]

    def keep_wishes(self, leases: Container[tuple[int, int]]) -> None:
        """Forget what was wished for jobs that this node does not hold."""
        self._wishes = {job: wish for job, wish in self._wishes.items() if (job, wish[0]) in leases}

    def begun(self, attempt: Attempt) -> None:
        """An attempt begins; perhaps it was to be ended before that."""
        lease, why, by = self._wishes.pop(attempt.job.id, (0, Ending.CANCEL, ""))
        if lease == attempt.job.lease:
            self.end(attempt, why, by)

    def _note(
        self, attempt: Attempt, kind: str, data: dict[str, Any], ending: Ending | None = None
    ) -> None:
        job = attempt.job
        attempt.noticed_at = self._clock.now()
        item = Notice(
            job=job.id,
            lease=job.lease,
            attempt=job.attempt,
            kind=kind,
            at=attempt.noticed_at,
            ending=ending,
            run_id=job.run_id,
            data={"task": job.task, **data},
        )
        self._store.post(notice, item)
