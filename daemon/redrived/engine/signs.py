"""Signs of life: what running attempts say, gathered into few writes."""

from __future__ import annotations

import asyncio

from redrive.clock import Clock
from redrived.engine.attempt import Attempt
from redrived.store.beats import Beat, beat
from redrived.store.picking import InHand
from redrived.store.store import Store

GATHERED = 0.25  # seconds of beats that become one write


class Signs:
    """Used by the main loop only."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._beats: dict[int, Beat] = {}  # the last of each job

    def beat(self, attempt: Attempt, at: int, progress: str | None, metrics: str | None) -> None:
        attempt.beat(self._clock.monotonic())
        attempt.progress = progress or attempt.progress
        attempt.metrics = metrics or attempt.metrics
        if not self._beats:
            asyncio.get_running_loop().call_later(GATHERED, self._write)
        job = attempt.job
        self._beats[job.id] = Beat(job.id, job.lease, at, attempt.progress, attempt.metrics)

    def last(self, job: InHand, at: int = 0, progress: str | None = None) -> None:
        """Before an end is told: afterwards, what is still gathered would change nothing."""
        gathered = self._beats.pop(job.id, None)
        word = gathered if progress is None else Beat(job.id, job.lease, at, progress)
        if word is not None:
            self._store.post(beat, word)

    def _write(self) -> None:
        beats, self._beats = self._beats, {}
        for item in beats.values():
            self._store.post(beat, item, must_land=False)  # the next one tells as much
