"""What a running handler may ask about itself, and say about how it goes.

Standard library only, Python 3.9 and later: this file is also read inside the
application's own interpreter, where nothing of ours is installed. It knows no socket and
no daemon: whoever runs the job (a pool's worker, `redrive.testing`) sets `running` and
brings a `Transport`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, Union

if TYPE_CHECKING:
    from logging import Logger

Item = TypeVar("Item")
Number = Union[int, float]

PROGRESS_EVERY = 1.0  # seconds between two progress messages; the last word is never dropped
MARK_EVERY = 0.5  # seconds of work that a crash may repeat in `remaining`
MARK_AT_MOST = 5000  # items in one mark
LONGEST_KEY = 200  # characters; longer keys are known by their digest
RESULT_AT_MOST = 64 * 1024  # bytes of JSON
TEXT_AT_MOST = 200  # characters of what progress or a metric says
METRICS_AT_MOST = 100  # of an attempt
NAME_AT_MOST = 100  # characters of a metric's name

_LARGEST = 2**63


class NoCurrentJob(RuntimeError):
    """`current_job()` was called where no job is running."""


class Transport(Protocol):
    """Carries the words of a running job to whoever runs it."""

    def beat(self, job: CurrentJob) -> None:
        """The job is alive; its `progress_made` and `metrics` are current."""
        ...

    def mark(self, job: CurrentJob, keys: list[str]) -> None:
        """These items of `remaining` are finished."""
        ...

    def marked(self, job: CurrentJob) -> set[str]:
        """What earlier executions of this job have marked."""
        ...

    def once(self, job: CurrentJob, key: str) -> bool:
        """Claim `key` durably; whether this was the first claim."""
        ...


class CurrentJob:
    """The job that is running, as its handler sees it."""

    __slots__ = (
        "_beat_at",
        "_said_at",
        "_transport",
        "_unmarked",
        "args",
        "attempt",
        "batch",
        "beat_every",
        "execution",
        "id",
        "lease",
        "max_attempts",
        "metrics",
        "progress_made",
        "run",
        "step",
    )

    def __init__(
        self,
        transport: Transport,
        beat_every: float,
        id: int,
        lease: int,
        attempt: int,
        max_attempts: int,
        execution: int,
        args: dict[str, Any],
        run: str | None = None,
        step: str | None = None,
        batch: str | None = None,
    ) -> None:
        self._transport = transport
        self.beat_every = beat_every
        self.id = id
        self.lease = lease
        self.attempt = attempt
        self.max_attempts = max_attempts
        self.execution = execution
        self.args = args
        self.run = run
        self.step = step
        self.batch = batch
        self.metrics: dict[str, Any] | None = None
        self.progress_made: list[Any] | None = None  # done, total, text
        self._beat_at = self._said_at = -math.inf
        self._unmarked: list[str] | None = None

    def heartbeat(self) -> None:
        """Say that the work goes on; cheap enough for an inner loop."""
        now = time.monotonic()
        if now - self._beat_at >= self.beat_every:
            self._beat(now)

    def progress(
        self,
        done: Number | None = None,
        total: Number | None = None,
        text: str | None = None,
    ) -> None:
        """Say how far the work has come; counts as a heartbeat."""
        said = None if text is None else shortened(str(text))
        self.progress_made = [_number(done), _number(total), said]
        now = time.monotonic()
        if now - self._said_at >= PROGRESS_EVERY:
            self._said_at = now
            self._beat(now)

    def count(self, name: str, n: Number = 1) -> None:
        """Add `n` to the metric `name` of this attempt."""
        self.metric(name, (self.metrics or {}).get(name, 0) + n)

    def metric(self, name: str, value: Number | str | bool | None) -> None:
        """Set a metric of this attempt; the metrics are kept however it ends.

        Every list has them, so there is a most of them: what is beyond is dropped.
        """
        if self.metrics is None:
            self.metrics = {}
        name, value = str(name), _plain(value)
        if name in self.metrics or has_room(self.metrics, name):
            self.metrics[name] = shortened(value) if isinstance(value, str) else value

    def once(self, key: str) -> bool:
        """True the first time for this run (or this job, when it has none), then never again.

        Durable before it answers, and at most once: after a crash right behind it, the mail
        or the charge it guards is not sent a second time.
        """
        return self._transport.once(self, _short(key))

    def remaining(
        self, items: Iterable[Item], key: Callable[[Item], object] = str
    ) -> Iterator[Item]:
        """The items that no earlier execution of this job has finished.

        An item is finished once the loop asks for the next one. What is finished is told in
        groups, so a crash repeats the last half second: at least once.
        """
        finished = self._transport.marked(self) if self.execution > 1 else frozenset[str]()
        unmarked = self._unmarked = self._unmarked or []
        marked_at = time.monotonic()
        for item in items:
            name = _short(str(key(item)))
            if name in finished:
                continue
            yield item
            unmarked.append(name)
            now = time.monotonic()
            if now - marked_at >= MARK_EVERY or len(unmarked) >= MARK_AT_MOST:
                marked_at = now
                self.mark_finished()
        self.mark_finished()

    def mark_finished(self) -> None:
        """Tell what `remaining` has finished so far, without waiting for the group to fill.

        Whoever runs the job calls it at the end, too: a loop that was left by an exception is
        held by its traceback and would speak too late.
        """
        if self._unmarked:
            keys = self._unmarked[:]
            del self._unmarked[:]
            self._transport.mark(self, keys)

    @property
    def log(self) -> Logger:
        """A logger that ends in the output of this attempt.

        It follows the application's logging; where that is not set up, it writes INFO and
        above to standard error.
        """
        import logging

        logger = logging.getLogger("redrive.job")
        if not logger.hasHandlers():
            handler = logging.StreamHandler()
            handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
            logger.addHandler(handler)
            logger.setLevel(logging.INFO)
            logger.propagate = False
        return logger

    def _beat(self, now: float) -> None:
        self._beat_at = now
        self._transport.beat(self)


running: ContextVar[CurrentJob] = ContextVar("redrive.running")


def current_job() -> CurrentJob:
    """The job that is running here."""
    job = running.get(None)
    if job is None:
        raise NoCurrentJob(
            "no job is running here; call current_job() inside a handler, and hand the job to "
            "threads that you start yourself"
        )
    return job


def shortened(text: str) -> str:
    """As much of a text as every list of jobs can carry."""
    return text if len(text) <= TEXT_AT_MOST else text[: TEXT_AT_MOST - 1] + "…"


def has_room(metrics: dict[str, Any], name: str) -> bool:
    """Whether one more metric, by this name, is kept."""
    return len(name) <= NAME_AT_MOST and len(metrics) < METRICS_AT_MOST


def _short(key: str) -> str:
    if len(key) <= LONGEST_KEY and "\0" not in key:  # which PostgreSQL keeps in no text
        return key
    return "blake2b:" + blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _number(value: Any) -> Any:
    """A count of progress; what it cannot be is the handler's mistake, and told there."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise TypeError(f"{value!r} cannot be progress: a number can, and None where none is known")
    return _plain(value)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and -_LARGEST < value < _LARGEST:
        return value
    raise ValueError(f"{value!r} cannot be a metric or progress: text or a usual number can")
