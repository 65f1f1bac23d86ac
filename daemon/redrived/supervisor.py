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
from redrived import descriptors, memory
from redrived.api.bridge import Bridge
from redrived.bus import Bus
from redrived.engine.attempt import Ending
from redrived.engine.engine import Engine
from redrived.engine.health import draining
from redrived.engine.node import Node
from redrived.engine.timers import Timers
from redrived.instance_lock import InstanceLock
from redrived.notify import Notifier
from redrived.processes import cgroups
from redrived.processes.parent import become_parent
from redrived.service import Service
from redrived.store.store import Store

log = logging.getLogger(__name__)

KILL_WITHIN = 10.0  # seconds that ending processes may take beyond their grace


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
        self._hurry = asyncio.Event()
        self._started: list[Service] = []
        self._reloads: set[asyncio.Task[None]] = set()
        self._problem: RedriveError | None = None
        self._cgroups: cgroups.Cgroups | None = None

    async def run(self) -> None:
        """Until told to stop. Raises what made it fail."""
        folders = {self.state_dir.resolve(): "state_dir"}
        folders.setdefault(self.runtime_dir.resolve(), "runtime_dir")  # it may be the same one
        locks = [InstanceLock(folder, key) for folder, key in folders.items()]
        for lock in locks:
            lock.take()
        try:
            become_parent()
            self._cgroups = cgroups.prepared(locks[0].number, self.epoch[:8])
            descriptors.provide(self.config.daemon.concurrency)
            # Relative to the config, as everything in it; starting a command is cheapest here.
            os.chdir(self.config.folder)
            self._listen_for_signals()
            await self._serve()
        finally:
            if self._cgroups is not None:
                self._cgroups.remove()
            for lock in locks:
                lock.release()
        if self._problem is not None:
            raise self._problem

    def stop(self, problem: RedriveError | None = None) -> None:
        """Drain and go; a second time, go at once."""
        self._problem = self._problem or problem
        if self._stop.is_set():
            log.warning("told to stop again: what runs is ended now")
            self._hurry.set()
        self._stop.set()

    async def _serve(self) -> None:
        store = Store(
            store_url(self.config, os.environ),
            self.clock,
            self.node_name,
            self.config.store.durability,
        )
        async with self.notifier.patience("opening the store"):
            await store.open()
        try:
            await self._serve_with(store)
        finally:
            await store.close()

    async def _serve_with(self, store: Store) -> None:
        timers = Timers(self.clock)
        timers.start()
        timers.every("memory", memory.EVERY, memory.give_back)
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
            cgroups=self._cgroups,
        )
        log.info("%s", engine.trees.reach)
        engine.reloader.when_begun.append(self.notifier.reloading)
        engine.reloader.when_over.append(self.notifier.ready)
        node = Node(engine, self.notifier, self.stop)
        bridge = Bridge(engine, Bus(self.config.bus, self.runtime_dir, self.epoch))
        failed = asyncio.ensure_future(self._watch_store(store))
        try:
            async with self.notifier.patience("settling what an earlier daemon left"):
                await node.arrive()
                outside: list[Service] = [node, bridge, *self._http(engine, node)]
                # Work begins last: a start that fails must leave none behind.
                for service in (*engine.services, *outside, engine.dispatcher):
                    await service.start()
                    self._started.append(service)
            self._reload_on_signal(engine)
            self.notifier.ready()
            log.info("redrive %s is up as %s (pid %d)", __version__, self.node_name, os.getpid())
            await self._stop.wait()
            self.notifier.stopping()
            async with self.notifier.patience(draining(engine)):
                await self._drain(engine)
        finally:
            failed.cancel()
            await self._stop_services()
            await timers.stop()
        log.info("stopped")

    async def _stop_services(self) -> None:
        for service in reversed(self._started):
            try:
                await service.stop()
            except Exception:  # those before it are to be stopped all the same
                log.exception("%s did not stop as it should", type(service).__name__)

    def _http(self, engine: Engine, node: Node) -> list[Service]:
        if self.config.http is None:
            return []
        from redrived.http.server import HttpServer  # what is not used is not imported

        return [HttpServer(engine, node.health, self.config.http)]

    async def _watch_store(self, store: Store) -> None:
        assert store.failed is not None
        try:
            await asyncio.shield(store.failed)
        except RedriveError as problem:
            log.critical("%s", problem)
            self._hurry.set()  # there is nothing to drain into
            self.stop(problem)

    async def _drain(self, engine: Engine) -> None:
        """Start nothing more, let what runs finish for a while, interrupt the rest for free."""
        engine.drain(stop=False)
        log.info(draining(engine))
        await self._until_idle(engine, engine.definitions.config.daemon.shutdown_grace)
        left = engine.under_way
        for attempt in left:
            engine.ender.end(attempt, Ending.DRAIN, "the daemon was stopped")
        longest = max((attempt.definition.task.grace for attempt in left), default=0.0)
        self._hurry.clear()
        await self._until_idle(engine, longest + KILL_WITHIN)

    async def _until_idle(self, engine: Engine, seconds: float) -> None:
        """Until nothing runs any more, the time is up, or somebody is in a hurry."""
        idle = asyncio.Event()

        def look() -> None:
            if engine.is_idle:
                idle.set()

        engine.settler.when_freed.append(look)
        engine.timers.every("drain", 1.0, look)  # a lease that failed frees nothing, and says so
        look()
        waiting = [asyncio.ensure_future(event.wait()) for event in (idle, self._hurry)]
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for each in waiting:
            each.cancel()
        engine.timers.cancel("drain")
        engine.settler.when_freed.remove(look)

    def _listen_for_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        # Until there is something to reload: the config has only just been read.
        loop.add_signal_handler(signal.SIGHUP, log.info, "not reloaded: the daemon is starting")

    def _reload_on_signal(self, engine: Engine) -> None:
        async def reload() -> None:
            try:
                await engine.reloader.reload(dry_run=False, by="SIGHUP")
            except RedriveError:
                pass  # the reloader has said so, in the log and in the events

        def begin() -> None:
            task = asyncio.ensure_future(reload())
            self._reloads.add(task)
            task.add_done_callback(self._reloads.discard)

        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, begin)
