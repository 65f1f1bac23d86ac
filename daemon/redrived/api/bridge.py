"""Between the engine and the bus: what lands is told, what is asked is answered."""

from __future__ import annotations

import os

import msgspec

from redrive import __version__
from redrive.clock import SECOND
from redrive.models import Progress
from redrive.protocol import VERSION
from redrive.protocol.announcements import JobVitals, Vitals
from redrive.protocol.queries import Welcome
from redrived.api.receipts import KEPT, MOST
from redrived.api.server import Server
from redrived.api.table import table
from redrived.api.tail import Tail
from redrived.bus import Asker, Bus
from redrived.engine.attempt import Attempt
from redrived.engine.engine import Engine
from redrived.processes.resources import Sampler, Usage
from redrived.store import receipts

HEAD_EVERY = 1.0  # seconds; in that time a lost tail is noticed


class Bridge:
    def __init__(self, engine: Engine, bus: Bus) -> None:
        self._engine = engine
        self._bus = bus
        engine.unreachable = lambda: bus.trouble
        elsewhere = None if engine.store.database.is_sqlite else self._was_done_elsewhere
        self._server = Server(bus, table(engine), self._welcome, engine.clock, elsewhere)
        self._sampler = Sampler()
        self._tail = Tail(engine.store, bus)

    async def start(self) -> None:
        await self._bus.start()
        await self._tail.start()
        earlier = await self._engine.store.read(receipts.recent, self._kept_since(), MOST)
        self._server.remember(earlier)
        await self._server.start()
        self._engine.timers.every("head", HEAD_EVERY, self._tell_head)

    async def stop(self) -> None:
        self._engine.timers.cancel("head")
        await self._server.stop()
        await self._tail.stop()
        await self._bus.stop()

    async def _was_done_elsewhere(self, who: str, request: str) -> bool:
        read = self._engine.store.read
        return await read(receipts.was_carried_out, who, request, self._kept_since())

    def _kept_since(self) -> int:
        return self._engine.clock.now() - round(KEPT * SECOND)

    def _tell_head(self) -> None:
        if not self._engine.store.database.is_sqlite:
            self._tail.wake()  # other nodes write too
        now = self._engine.clock.now()
        self._bus.head(self._tail.head, now)
        if self._bus.connections["events"]:
            self._bus.vitals(self._vitals(now))

    def _vitals(self, now: int) -> Vitals:
        attempts = list(self._engine.attempts)
        usages = self._sampler.trees(attempt.executor.pids() for attempt in attempts)
        node = self._sampler.node()
        return Vitals(
            epoch=self._bus.epoch,
            at=now,
            node=self._engine.node,
            cpu=node.cpu,
            memory=node.memory,
            jobs=[
                _job_vitals(attempt, usage, now, self._engine)
                for attempt, usage in zip(attempts, usages, strict=True)
            ],
        )

    def _welcome(self, asker: Asker) -> Welcome:
        engine = self._engine
        console = engine.definitions.config.console
        return Welcome(
            version=VERSION,
            program=__version__,
            node=engine.node,
            epoch=engine.epoch,
            store=engine.store.id,
            role=asker.role,
            who=asker.who,
            environment=console.environment,
            colour=console.colour,
            protected=console.protected,
            events=self._bus.addresses["events"],
            config=engine.definitions.config.path,
            pid=os.getpid(),
            state_dir=str(engine.state_dir),
        )


def _job_vitals(attempt: Attempt, used: Usage | None, now: int, engine: Engine) -> JobVitals:
    made = msgspec.json.decode(attempt.progress, type=Progress) if attempt.progress else None
    silent_for = engine.clock.monotonic() - attempt.beat_at
    return JobVitals(
        job=attempt.job.id,
        heartbeat_at=now - round(silent_for * SECOND),
        progress=(made.done, made.total, made.text) if made else None,
        cpu=used.cpu if used else None,
        memory=used.memory if used else None,
        children=used.children if used else None,
    )
