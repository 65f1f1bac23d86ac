"""What the daemon and its workers say to each other, and how it is framed.

Frames of four bytes of length and that much JSON: a kind, then its values. The worker's half
is in `redrived.worker`, which is standard library only; here msgspec checks every word, as
what a worker says comes from the application's code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct

LARGEST_FRAME = 64 << 20  # a worker that says more at once is out of its mind

# `stale`: it was not begun, a fresh worker may be able to.
Outcome = Literal["done", "failed", "permanent", "transient", "snoozed", "cancelled", "stale"]


class HandedJob(Struct, array_like=True, frozen=True, gc=False):
    """A job on its way to a worker."""

    task: str
    id: int
    lease: int
    attempt: int
    max_attempts: int
    execution: int
    args: Raw
    run: str | None = None
    step: str | None = None
    batch: str | None = None


class TaskFacts(Struct, array_like=True, frozen=True):
    """What a worker must know of a task."""

    python: str  # module:function
    beat_every: float = 30.0
    env: dict[str, str] | None = None
    cwd: str | None = None
    limits: Mapping[str, int] | None = None  # of its process, by the names in the config


class Failure(Struct, frozen=True):
    """Why an attempt did not succeed, in the worker's words."""

    names: list[str]  # of the exception's class and its bases, with their modules
    message: str
    traceback: str | None = None
    type: str | None = None  # the error type that the handler named
    retry_after: float | None = None  # seconds
    until: int | None = None


class Report(Struct, array_like=True, frozen=True, gc=False):
    """How an attempt ended."""

    job: int
    lease: int
    began: int
    took: int  # microseconds
    outcome: Outcome = "done"
    result: Raw = Raw(b"null")
    wrote: bool = False  # there is output, in the attempt's own file
    metrics: dict[str, Any] | None = None
    progress: tuple[float | None, float | None, str | None] | None = None
    failure: Failure | None = None
    goes_on: bool = False  # it was interrupted, and what it has begun runs in threads or tasks


class Ready(Struct, array_like=True, tag="ready"):
    pid: int
    python: str
    said: str  # what it printed while starting
    preload_failed: str = ""  # what could not be imported, and why


class Reports(Struct, array_like=True, tag="report"):
    reports: list[Report]


class Begun(Struct, array_like=True, tag="begun"):
    """A job behind another in the hand runs, and for longer than a moment."""

    job: int
    lease: int
    at: int


class Beat(Struct, array_like=True, tag="beat"):
    job: int
    lease: int
    at: int
    progress: tuple[float | None, float | None, str | None] | None
    metrics: dict[str, Any] | None


class Mark(Struct, array_like=True, tag="mark"):
    """Items of `job.remaining` that are finished."""

    job: int
    lease: int
    keys: list[str]


class Ask(Struct, array_like=True, tag="ask"):
    """A question of a handler that waits: `once` (a key) or `marked` (a cursor, first None).

    `once` is answered with a bool, `marked` with a page of keys and the cursor behind it, None
    after the last.
    """

    number: int
    job: int
    lease: int
    question: Literal["once", "marked"]
    value: str | int | None


class GaveBack(Struct, array_like=True, tag="gave_back"):
    jobs: list[tuple[int, int]]  # job, lease


class Warn(Struct, array_like=True, tag="warn"):
    text: str


Word = Ready | Reports | Begun | Beat | Mark | Ask | GaveBack | Warn

_BEGINNING = b'["'  # of every word
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Word).decode


class Garbled(Exception):
    """What came is no word of a worker."""


def frame(kind: str, *values: object) -> bytes:
    text = _encode((kind, *values))
    return len(text).to_bytes(4) + text


class Words:
    """Puts the words of one worker together from what its socket brings."""

    def __init__(self) -> None:
        self._received = bytearray()

    def feed(self, data: bytes) -> Iterator[Word]:
        received = self._received
        received += data
        start = 0
        while len(received) >= start + 4:
            end = start + 4 + int.from_bytes(received[start : start + 4])
            if end - start > LARGEST_FRAME:
                raise Garbled(f"a frame of {end - start} bytes")
            if len(received) < end:
                # The rest of what is no word may never come, and would swallow all that follow.
                if not _BEGINNING.startswith(begins := received[start + 4 : start + 6]):
                    raise Garbled(f"a frame that begins with {bytes(begins)!r}")
                break
            try:
                yield _decode(bytes(received[start + 4 : end]))
            except (msgspec.MsgspecError, RecursionError) as error:
                raise Garbled(str(error)) from error
            start = end
        del received[:start]
