"""`GET /metrics`: what the engine knows, in Prometheus's words.

Every number is one that somebody keeps already; the rows read here are few however many jobs
there are. The groups of errors alone are counted, and not more than twice a minute.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate

from msgspec import Struct
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response

from redrive import __version__
from redrive.clock import SECOND
from redrive.protocol.rows import DueRow, GroupRow, NodeRow
from redrived.api.server import Asker
from redrived.engine.engine import Engine
from redrived.engine.health import Health
from redrived.engine.measures import Histogram
from redrived.store import due, groups, nodes, tallies
from redrived.store.store import Connection

GROUPS_EVERY = 30.0  # seconds
MOST_GROUPS = 20
SOON = 15 * 60 * SECOND


class Seen(Struct, frozen=True, kw_only=True):
    """What is read from the store for one answer."""

    counts: tallies.Counts
    oldest: dict[str, int]
    due: list[DueRow]
    nodes: list[NodeRow]


class Metrics:
    """Used by the main loop only."""

    def __init__(self, engine: Engine, health: Health) -> None:
        self._engine = engine
        self._health = health
        self._groups: list[GroupRow] = []
        self._grouped_at = float("-inf")
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)

    async def answer(self, engine: Engine, asker: Asker, request: Request) -> Response:
        now = engine.clock.now()

        def ask(connection: Connection) -> Seen:
            return Seen(
                counts=tallies.read(connection),
                oldest=due.oldest_ready(connection),
                due=due.soon(connection, now, now + SOON),
                nodes=nodes.rows(connection),
            )

        seen = await engine.store.read(ask)
        await self._look_at_groups(now)
        registry = CollectorRegistry()
        registry.register(Given([*self._of_store(seen, now), *self._of_engine()]))
        text = generate_latest(registry) + generate_latest(self._registry)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def _look_at_groups(self, now: int) -> None:
        if self._engine.clock.monotonic() - self._grouped_at >= GROUPS_EVERY:
            self._grouped_at = self._engine.clock.monotonic()
            self._groups = await self._engine.store.read(groups.groups, None, now, MOST_GROUPS)

    def _of_store(self, seen: Seen, now: int) -> Iterator[Metric]:
        jobs = GaugeMetricFamily(
            "redrive_jobs", "Jobs in each state", labels=["queue", "task", "state"]
        )
        for queue, tasks in seen.counts.items():
            for task, states in tasks.items():
                for state, n in states.items():
                    jobs.add_metric([queue, task, state], n)
        yield jobs
        yield _gauge(
            "redrive_queue_oldest_ready_seconds",
            "How long the job that waits longest could have begun",
            "queue",
            ((queue, max(0, now - at) / SECOND) for queue, at in seen.oldest.items()),
        )
        retries: dict[str, int] = {}
        for row in seen.due:
            if row.kind == "retry":
                retries[row.name] = retries.get(row.name, 0) + row.n
        yield _gauge(
            "redrive_retries_due",
            "Retries that fall due within 15 minutes",
            "queue",
            retries.items(),
        )
        dead = GaugeMetricFamily(
            "redrive_dead_jobs",
            "Dead jobs of the largest error groups",
            labels=["fingerprint", "error_type"],
        )
        for group in self._groups:
            if group.dead:
                dead.add_metric([group.fingerprint, group.error_type], group.dead)
        yield dead
        present = GaugeMetricFamily(
            "redrive_node_state", "1 for each node", labels=["node", "state"]
        )
        for node in seen.nodes:
            present.add_metric([node.name, node.state], 1)
        yield present

    def _of_engine(self) -> Iterator[Metric]:
        measures = self._engine.measures
        yield InfoMetricFamily("redrive_build", "This daemon", {"version": __version__})
        attempts = CounterMetricFamily(
            "redrive_attempts",
            "Attempts that ended here, by what became of the job",
            labels=["task", "became"],
        )
        for (task, became), n in measures.attempts.items():
            attempts.add_metric([task, became], n)
        yield attempts
        seconds = HistogramMetricFamily(
            "redrive_attempt_seconds", "How long attempts ran", labels=["task"]
        )
        for task, histogram in measures.durations.items():
            seconds.add_metric([task], _buckets(histogram), histogram.total)
        yield seconds
        events = CounterMetricFamily("redrive_events", "Events of this node", labels=["type"])
        for kind, n in measures.events.items():
            events.add_metric([kind], n)
        yield events
        writes = HistogramMetricFamily(
            "redrive_store_write_seconds", "From asking for a change to its being on disk"
        )
        writes.add_metric([], _buckets(measures.writes), measures.writes.total)
        yield writes
        yield from self._of_node()

    def _of_node(self) -> Iterator[Metric]:
        engine = self._engine
        busy = engine.dispatcher.busy()
        pools = engine.python.pools.values()
        writer = engine.store.writer
        slots = engine.definitions.config.daemon.concurrency
        free = engine.disk.room.free if engine.disk.room else 0
        for name, words, value in (
            ("slots", "Jobs that may run at once", slots),
            ("store_backlog", "Changes that wait for the writer", writer.backlog),
            ("store_trouble", "1 while the store is in trouble", writer.trouble is not None),
            (
                "command_trouble",
                "1 while no command can be started",
                engine.commands.trouble is not None,
            ),
            ("unreachable", "1 while clients find no socket", engine.unreachable() is not None),
            ("draining", "1 while nothing new begins", not engine.dispatcher.is_open),
            ("healthy", "1 while the watchdog is fed", self._health.ailment is None),
            ("loop_lag_seconds", "By how much the loop last came late", self._health.lag),
            ("disk_free_bytes", "Where the store is", free),
        ):
            yield GaugeMetricFamily(f"redrive_{name}", words, float(value))
        yield _gauge("redrive_slots_busy", "Slots in use", "queue", busy.items())
        yield _gauge(
            "redrive_pool_workers",
            "Worker processes",
            "pool",
            ((p.name, len(p.workers)) for p in pools),
        )
        yield _gauge(
            "redrive_pool_workers_busy",
            "Those that work",
            "pool",
            ((p.name, p.busy) for p in pools),
        )
        yield _gauge(
            "redrive_pool_trouble",
            "1 while no worker stays up, or a preload fails",
            "pool",
            ((p.name, bool(p.trouble or p.preload_failed)) for p in pools),
        )
        yield _gauge(
            "redrive_breaker_open",
            "1 for each",
            "task",
            ((b.task, 1) for b in engine.breakers.all()),
        )
        paused = GaugeMetricFamily("redrive_paused", "1 for each", labels=["kind", "name"])
        for pause in engine.pauses.all():
            paused.add_metric([pause.kind, pause.name], 1)
        yield paused


class Given(Collector):
    """Families that are there already."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterable[Metric]:
        return self._families


def _gauge(
    name: str, words: str, label: str, values: Iterable[tuple[str, float]]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, words, labels=[label])
    for value, n in values:
        family.add_metric([value], float(n))
    return family


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    """Counts up to each bound, as Prometheus wants them."""
    bounds = [*(str(bound) for bound in histogram.BOUNDS), "+Inf"]
    return list(zip(bounds, map(float, accumulate(histogram.counts)), strict=True))
