"""Attempts of an earlier daemon that SIGKILL does not end.

They stay under way until their processes are gone, so that no job runs twice at once on this
machine, and are told of as any attempt is that cannot be ended. Nobody waits for them: they
have no slot here, as they may stay for ever.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from redrive.clock import Clock
from redrive.config.sections import Config, Task
from redrived.engine.attempt import Attempt, Attempts, ending_of
from redrived.engine.definitions import TaskDefinition
from redrived.processes import proc
from redrived.processes.identity import Identity
from redrived.processes.live_output import workers_of
from redrived.processes.marks import command_mark, worker_mark
from redrived.store.picking import InHand
from redrived.store.rescue import LeftBehind, told_unkillable
from redrived.store.store import Store

# Whatever its task says, no sign of life is expected of it any more, and no end in time.
_UNWATCHED = Task(command=["an earlier daemon's"])


class Leftover:
    """The processes of such an attempt. They have had their SIGKILL, and nothing else is done."""

    def __init__(self, processes: Sequence[Identity]) -> None:
        self._processes = processes

    def end(self, attempt: Attempt, grace: float) -> None: ...

    def pids(self) -> list[int]:
        return _living(self._processes)

    def live_output(self, attempt: Attempt) -> str | None:
        return None

    def sample(self) -> int:
        return 0

    def cut_output(self, attempt: Attempt, limit: int) -> None: ...

    def unkillable(self) -> tuple[int, ...]:
        return tuple(self.pids())

    def keeps_output(self) -> bool:
        return False


class Leftovers:
    """Used by the main loop only."""

    def __init__(
        self, store: Store, attempts: Attempts, clock: Clock, outputs: str, node: str
    ) -> None:
        self._store = store
        self._attempts = attempts
        self._clock = clock
        self._outputs = outputs
        self._node = node
        self._kept: dict[Attempt, LeftBehind] = {}
        self._strangers: Sequence[Identity] = ()

    def __contains__(self, attempt: Attempt) -> bool:
        return attempt in self._kept

    @property
    def strangers(self) -> list[int]:
        """Those of no attempt, for all that is known, and of one that has begun anew elsewhere."""
        given_away = [
            pid
            for attempt, left in self._kept.items()
            if self._attempts.get(left.job.id, left.job.lease) is not attempt
            for pid in attempt.unkillable
        ]
        return [*_living(self._strangers), *given_away]

    async def keep(
        self, pids: Iterable[int], left: Sequence[LeftBehind], known: Mapping[int, str]
    ) -> set[int]:
        """Go on with the attempts whose processes these are; says of which jobs they are.

        `known` are marks of processes, whatever has become of their environment.
        """
        alive = [process for pid in pids if (process := Identity.of(pid)) is not None]
        if not alive:
            return set()
        begun = {each.job.id: each for each in left if each.started_at is not None}
        told = await self._store.read(told_unkillable, self._node)
        marks = {mark: job for job, each in begun.items() for mark in self._marks(each.job)}
        found: defaultdict[int | None, list[Identity]] = defaultdict(list)
        for process in alive:
            # What was said of it goes first: by now its worker's name may be another's.
            borne = {*_environment(process.pid), known.get(process.pid)}
            job = told.get(process.pid) or next(map(marks.get, marks.keys() & borne), None)
            found[job if job in begun else None].append(process)
        self._strangers = found.pop(None, ())
        return {self._go_on(begun[job], found[job]) for job in begun.keys() & found.keys()}

    def gone(self) -> list[LeftBehind]:
        """The attempts that are over by now, each with the end that was asked for meanwhile."""
        over = [attempt for attempt in self._kept if not attempt.unkillable]
        for attempt in over:
            self._attempts.pop(attempt.job.id, attempt.job.lease)
        return [
            self._kept.pop(attempt)._replace(ending=attempt.ending, by=attempt.by)
            for attempt in over
        ]

    def _marks(self, job: InHand) -> Iterator[str]:
        yield command_mark(f"{job.id}.{job.lease}")
        for worker in workers_of(self._outputs, job.id, job.execution):
            yield worker_mark(worker)

    def _go_on(self, left: LeftBehind, processes: Sequence[Identity]) -> int:
        job = left.job
        definition = TaskDefinition(job.task, _UNWATCHED, Config())
        began_at, now = left.started_at or 0, self._clock.monotonic()
        attempt = Attempt(job, definition, Leftover(processes), began_at, now)
        if (ending := ending_of(left.ending)) is not None:
            attempt.mark(ending, left.by)
        self._attempts.add(attempt)
        self._kept[attempt] = left
        return job.id


def _environment(pid: int) -> set[str]:
    return {entry.decode(errors="replace") for entry in proc.environment(pid)}


def _living(processes: Iterable[Identity]) -> list[int]:
    return [process.pid for process in processes if process.is_alive()]
