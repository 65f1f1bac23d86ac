"""What the daemon tells everybody who listens; a hint, the store is the truth."""

from __future__ import annotations

from msgspec import Struct

from redrive.instants import Instant
from redrive.models import Event

# Topics: the first frame of a message.
EVENTS = b"events"
HEAD = b"head"
VITALS = b"vitals"


class EventBatch(Struct, frozen=True, kw_only=True, array_like=True):
    """Events in commit order, dense from the first one's seq."""

    epoch: str
    events: list[Event]


class Head(Struct, frozen=True, kw_only=True, array_like=True):
    """Each second: how far the log is, so that a lost tail is noticed."""

    epoch: str
    seq: int
    at: Instant


class JobVitals(Struct, frozen=True, kw_only=True, array_like=True):
    job: int
    heartbeat_at: Instant | None
    progress: tuple[float | None, float | None, str | None] | None = None
    cpu: float | None = None
    memory: int | None = None
    children: int | None = None  # and theirs, as many as live


class Vitals(Struct, frozen=True, kw_only=True, array_like=True):
    """Each second: what running jobs and the node use; never stored, never replayed."""

    epoch: str
    at: Instant
    node: str
    cpu: float
    memory: int
    jobs: list[JobVitals]
