"""What starts, in which order, and how it ends.

The order is the promise: nothing is touched before the lock is held, nobody can ask before
the store is open, nothing new begins before what an earlier daemon left behind is gone.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import uuid
from pathlib import Path

from redrive import __version__
from redrive.clock import SystemClock
from redrive.config import Loaded, node_name, runtime_dir, state_dir, store_url
from redrive.errors import RedriveError
from redrived.api.bridge import Bridge
from redrived.engine.attempt import Ending
from redrived.engine.engine import Engine
from redrived.engine.node import Node
from redrived.engine.timers import Timers
from redrived.instance_lock import InstanceLock
from redrived.notify import Notifier
from redrived.processes.parent import become_parent
from redrived.service import Service
from redrived.store.store import Store

log = logging.getLogger(__name__)


class Supervisor:
    """One daemon, from its lock to its last word."""

    def __init__(self, loaded: Loaded) -> None:
        config = loaded.config
        self.loaded = loaded
        self.config = config
        self.epoch = uuid.uuid4().hex
        self.node_name = node_name(config)
        self.state_dir = Path(state_dir(config, os.environ))
        self.runtime_dir = Path(runtime_dir(config, os.environ))
        self.clock = SystemClock()
        self.notifier = Notifier()
        self._stop = asyncio.Event()
        self._signals = 0
        self._started: list[Service] = []
        self._problem: RedriveError | None = None

    async def run(self) -> None:
        """Until told to stop. Raises what made it fail."""
        locks = [InstanceLock(self.state_dir), InstanceLock(self.runtime_dir)]
        for lock in locks:
            lock.take()
        try:
            become_parent()
            self._listen_for_signals()
            await self._serve()
        finally:
            for lock in locks:
                lock.release()
        if self._problem is not None:
            raise self._problem

    def stop(self, problem: RedriveError | None = None) -> None:
        """Drain and go; a second time, go at once."""
        self._problem = self._problem or problem
        self._signals += 1
        self._stop.set()
        if self._signals > 1:
            log.warning("told to stop again: what runs is ended now")

    async def _serve(self) -> None:
        self.notifier.status("opening the store")
        store = Store(
            store_url(self.config, os.environ),
            self.clock,
            self.node_name,
            self.config.store.durability,
        )
        await store.open()
        try:
            await self._serve_with(store)
        finally:
            await store.close()

    async def _serve_with(self, store: Store) -> None:
        timers = Timers(self.clock)
        timers.start()
        engine = Engine(
            self.config,
            store,
            self.clock,
            timers,
            node=self.node_name,
            epoch=self.epoch,
            state_dir=self.state_dir,
            runtime_dir=self.runtime_dir,
            drain=self.stop,
        )
        node = Node(engine, self.notifier)
        bridge = Bridge(engine, node, self)
        failed = asyncio.ensure_future(self._watch_store(store))
        try:
            for service in (*engine.services, node, bridge):
                await service.start()
                self._started.append(service)
            self.notifier.ready()
            log.info("redrive %s is up as %s (pid %d)", __version__, self.node_name, os.getpid())
            await self._stop.wait()
            self.notifier.stopping()
            await self._drain(engine)
        finally:
            failed.cancel()
            for service in reversed(self._started):
                await service.stop()
            await timers.stop()
        log.info("stopped")

    async def _watch_store(self, store: Store) -> None:
        assert store.failed is not None
        try:
            await asyncio.shield(store.failed)
        except RedriveError as problem:
            log.critical("%s", problem)
            self._signals += 1  # there is nothing to drain into
            self.stop(problem)

    async def _drain(self, engine: Engine) -> None:
        """Start nothing more, let what runs finish for a while, interrupt the rest for free."""
        engine.dispatcher.is_open = False
        engine.python.take_back()
        loop = asyncio.get_running_loop()
        until = loop.time() + self.config.daemon.shutdown_grace
        log.info("draining: %d attempts under way", len(engine.attempts))
        while engine.attempts and loop.time() < until and self._signals < 2:
            self.notifier.status(f"draining {len(engine.attempts)} attempts")
            await asyncio.sleep(0.05)
        for attempt in engine.attempts:
            engine.ender.end(attempt, Ending.DRAIN, "the daemon was stopped")
        longest = max((a.definition.task.grace for a in engine.attempts), default=0.0)
        until = loop.time() + longest + 10
        while engine.attempts and loop.time() < until:
            await asyncio.sleep(0.02)

    def _listen_for_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
