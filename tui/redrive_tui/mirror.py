"""What the console knows of the daemon: plain records, kept by the link, read by the screens.

The link puts things in (`meet`, `load`, `apply`, `feel`, `relink`), screens look. `version`
grows with every change, so that a screen knows without comparing that it may have to paint.
No terminal here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from redrive.clock import SECOND, Clock
from redrive.models import Event
from redrive.protocol.announcements import JobVitals, Vitals
from redrive.protocol.queries import StatusReply, Welcome
from redrive_tui.event_ring import EventRing, Gap
from redrive_tui.link_state import LinkState, LinkWord
from redrive_tui.throughput import Throughput

CPU_KEPT = 60


class Mirror:
    """The daemon as last told, and how long ago that was."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.version = 0
        self.link = LinkState(since=clock.monotonic())
        self.welcome: Welcome | None = None
        self.status: StatusReply | None = None
        self.events = EventRing()
        self.seq = 0
        self.dropped = 0
        self.throughput: dict[str, Throughput] = {}
        self.cpu: dict[str, deque[float]] = {}  # of each node, oldest first
        self.vitals: dict[str, dict[int, JobVitals]] = {}  # of running jobs, by node
        self._told_at = 0.0
        self._last_event: int | None = None  # its seq

    def now(self) -> int:
        """The daemon's clock: ages are right even where this machine's clock is wrong."""
        if self.status is None:
            return self.clock.now()
        return self.status.at + int((self.clock.monotonic() - self._told_at) * SECOND)

    @property
    def as_of(self) -> int:
        """The instant the picture is true of: now while the link is fresh, else when last told.

        A node is not late, and a job has not run for longer, because this console does not
        hear of it.
        """
        link, now = self.link, self.clock.monotonic()
        if self.status is None or link.heard is None or link.is_fresh(now):
            return self.now()
        return self.status.at + int((link.heard - self._told_at) * SECOND)

    def meet(self, welcome: Welcome) -> None:
        """Who is there. A new epoch voids everything known before."""
        if self.welcome is not None and welcome.epoch != self.welcome.epoch:
            self._forget()
        self.welcome = welcome
        self.version += 1

    def load(self, status: StatusReply) -> None:
        """The whole at a glance; events up to its seq are in it."""
        self.status = status
        self.seq = max(self.seq, status.seq)
        self._told_at = self.clock.monotonic()
        self._forget_all_but(status)
        for queue in status.queues:
            self.throughput.setdefault(queue.name, Throughput()).read(status.at, queue.states)
        for node in status.nodes:
            if node.cpu is not None:
                self._cpu_of(node.name).append(node.cpu / 100)
        self.relink("live")

    def apply(self, events: Iterable[Event]) -> None:
        """What happened since, in order."""
        for event in events:
            if self._last_event is not None and event.seq <= self._last_event:
                continue
            self._note_gap(event)
            self.events.take(event)
            self._last_event = event.seq
            self.seq = max(self.seq, event.seq)
        self.heard()

    def feel(self, vitals: Vitals) -> None:
        """What a node and its running jobs use right now."""
        self.vitals[vitals.node] = {each.job: each for each in vitals.jobs}
        self.heard()

    def heard(self) -> None:
        """The daemon gave a sign of life."""
        self.relink("live")

    def relink(self, word: LinkWord, *, retries: int = 0, detail: str = "") -> None:
        """The link is now in this state; being live means having heard right now."""
        now = self.clock.monotonic()
        self.link = LinkState(
            word=word,
            heard=now if word == "live" else self.link.heard,
            since=self.link.since if word == self.link.word else now,
            retries=retries,
            detail=detail,
        )
        self.version += 1

    def _forget(self) -> None:
        self.status = None
        self.seq = self.dropped = 0
        self._last_event = None
        self.events.clear()
        self.throughput.clear()
        self.cpu.clear()
        self.vitals.clear()

    def _forget_all_but(self, status: StatusReply) -> None:
        """Queues and nodes come and go, and a console stays open for weeks."""
        nodes = {node.name for node in status.nodes}
        queues = {queue.name for queue in status.queues}
        for by_name, present in (
            (self.cpu, nodes),
            (self.vitals, nodes),
            (self.throughput, queues),
        ):
            for gone in by_name.keys() - present:
                del by_name[gone]

    def _cpu_of(self, node: str) -> deque[float]:
        return self.cpu.setdefault(node, deque(maxlen=CPU_KEPT))

    def _note_gap(self, event: Event) -> None:
        missing = event.seq - self._last_event - 1 if self._last_event is not None else 0
        if missing:
            self.events.take(Gap(missing=missing, before=event.seq))
            self.dropped += missing
