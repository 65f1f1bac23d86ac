"""One execution under way, from its begin to its settlement."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Protocol

from redrived.engine.definitions import TaskDefinition
from redrived.store.picking import InHand


class Ending(StrEnum):
    """Why an attempt is being ended from outside: asked for by a person, or noticed."""

    CANCEL = "cancel"
    KILL = "kill"
    RESTART = "restart"
    DRAIN = "drain"
    TIMEOUT = "timeout"
    STALLED = "stalled"
    LOST = "lost"
    LOG_LIMIT = "log_limit"


# A person's stop wins over everything; the rest is decided by who came first.
_RANKS = {Ending.KILL: 3, Ending.CANCEL: 2, Ending.RESTART: 1}


def ending_of(word: str | None) -> Ending | None:
    """As it stands in a row, which anybody may have written."""
    try:
        return Ending(word) if word else None
    except ValueError:
        return None


class Executor(Protocol):
    """Whatever runs the attempt: a worker process, a command, a call."""

    def end(self, attempt: Attempt, grace: float) -> None:
        """Begin to end it, at once without grace; its settlement follows by itself."""
        ...

    def pids(self) -> list[int]:
        """The processes that are known without a search, its leader first."""
        ...

    def live_output(self, attempt: Attempt) -> str | None:
        """The file it prints to just now, where that is not the attempt's own."""
        ...

    def sample(self) -> int:
        """Once a second: how many bytes it has written so far."""
        ...

    def cut_output(self, attempt: Attempt, limit: int) -> None:
        """Keep no more than so many bytes of what each stream has so far."""
        ...

    def unkillable(self) -> tuple[int, ...]:
        """The processes that it was to be ended with and that are still there after SIGKILL."""
        ...

    def keeps_output(self) -> bool:
        """Whether `sample` can see what it writes; else it tells nothing of its silence."""
        ...


class Attempt:
    """What is known of a running attempt. Used by the main loop only."""

    __slots__ = (
        "_armed",
        "beat_at",
        "began_at",
        "by",
        "definition",
        "ending",
        "ending_since",
        "executor",
        "is_importing",
        "is_late",
        "is_logged",
        "is_over",
        "job",
        "metrics",
        "noticed_at",
        "progress",
        "since",
        "written",
    )

    def __init__(
        self, job: InHand, definition: TaskDefinition, executor: Executor, began_at: int, now: float
    ) -> None:
        self.job = job
        self.definition = definition
        self.executor = executor
        self.began_at = began_at
        self.since = now  # monotonic, like every span here
        self.beat_at = now
        # A Python job that never beats is not expected to; everything else is, from the start.
        self._armed = definition.heartbeat_source != "job"
        self.is_logged = True  # its begin is in the store; else it is told with its end
        self.is_importing = False  # the code of its task is being loaded
        self.is_late = False  # silent for longer than half of what it may be
        self.is_over = False
        self.written = 0  # bytes, when last looked at
        self.ending: Ending | None = None
        self.ending_since: int | None = None  # an instant
        self.noticed_at = began_at  # the last thing that was told of it
        self.by: str | None = None
        self.progress: str | None = None  # JSON
        self.metrics: str | None = None  # JSON

    def beat(self, now: float) -> None:
        self._armed = True
        self.is_late = False
        self.beat_at = now

    def overdue(self, now: float) -> Ending | None:
        """Whether its deadline has passed, or its signs of life have stopped."""
        timeout = self.definition.task.timeout
        if timeout is not None and now - self.since > timeout:
            return Ending.TIMEOUT
        stalled_after = self.definition.stalled_after
        if self._is_watched and stalled_after is not None and now - self.beat_at > stalled_after:
            return Ending.STALLED
        return None

    def falls_late(self, now: float) -> bool:
        """Whether half of the silence it may keep has passed; said once per silence."""
        stalled_after = self.definition.stalled_after
        if self.is_late or not self._is_watched or stalled_after is None:
            return False
        self.is_late = now - self.beat_at > stalled_after / 2
        return self.is_late

    @property
    def _is_watched(self) -> bool:
        """Whether its silence counts; a handler that is still being imported cannot beat."""
        return self._armed or self.is_importing

    def forgive(self, gap: float) -> None:
        """The daemon itself stood still for a while: nobody is accused of that."""
        self.since += gap
        self.beat_at += gap

    @property
    def floods(self) -> bool:
        """Whether it had written more than it may, when last looked at."""
        return self.written > self.definition.task.limits.output

    @property
    def unkillable(self) -> tuple[int, ...]:
        """What keeps it from being over: as long as it is there, so is the attempt."""
        return self.executor.unkillable()

    @property
    def unlogged_begin(self) -> int | None:
        """When it began, for whoever writes its end; None when the store knows."""
        return None if self.is_logged else self.began_at

    def mark(self, ending: Ending, by: str | None = None) -> bool:
        """Note why it is being ended; False when something stronger is under way."""
        if self.ending is not None and _RANKS.get(ending, 0) <= _RANKS.get(self.ending, 0):
            return False
        self.ending = ending
        self.by = by
        return True


class Attempts:
    """The attempts this node has under way, by job."""

    def __init__(self) -> None:
        self.when_over: list[Callable[[Attempt], None]] = []
        self._running: dict[int, Attempt] = {}

    def __iter__(self) -> Iterator[Attempt]:
        return iter(list(self._running.values()))

    def __len__(self) -> int:
        return len(self._running)

    def add(self, attempt: Attempt) -> None:
        self._running[attempt.job.id] = attempt

    def get(self, job: int, lease: int | None = None) -> Attempt | None:
        found = self._running.get(job)
        if found is None or (lease is not None and found.job.lease != lease):
            return None
        return found

    def pop(self, job: int, lease: int) -> Attempt | None:
        found = self.get(job, lease)
        if found is None:
            return None
        found.is_over = True
        for tell in self.when_over:
            tell(found)
        return self._running.pop(job)
