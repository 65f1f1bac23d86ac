"""The engine put together: what the API and the supervisor are handed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from redrive.clock import Clock
from redrive.config.sections import Config
from redrive.config.sections import Pool as PoolSettings
from redrive.protocol.rows import NodeRow
from redrived.engine.attempt import Attempt, Attempts, Ending
from redrived.engine.breaker import Breakers
from redrived.engine.command_runner import CommandRunner
from redrived.engine.definitions import Definitions
from redrived.engine.disk import Disk
from redrived.engine.dispatcher import Dispatcher
from redrived.engine.ender import Ender
from redrived.engine.gates import Gates
from redrived.engine.hooks import Hooks
from redrived.engine.http_runner import HttpRunner
from redrived.engine.leadership import Leadership
from redrived.engine.leftovers import Leftovers
from redrived.engine.measures import Measures
from redrived.engine.order import Order
from redrived.engine.orphans import Orphans
from redrived.engine.outbox import Outbox
from redrived.engine.pace import Pace
from redrived.engine.pauses import Pauses
from redrived.engine.peers import Peers
from redrived.engine.pipelines import Pipelines
from redrived.engine.promoter import Promoter
from redrived.engine.pruner import Pruner
from redrived.engine.python_runner import PythonRunner
from redrived.engine.redrives import Redrives
from redrived.engine.reload import Reloader
from redrived.engine.rescuer import Rescuer
from redrived.engine.settler import Settler
from redrived.engine.signs import Signs
from redrived.engine.timers import Timers
from redrived.engine.timetable import Timetable
from redrived.engine.unkillable import Unkillable
from redrived.engine.watch import Watch
from redrived.processes.cgroups import Cgroups
from redrived.processes.commands import Commands
from redrived.processes.hook_command import HookCommands
from redrived.processes.marks import owner_of
from redrived.processes.output import Outputs
from redrived.processes.pool import Pool
from redrived.processes.tree import Trees
from redrived.service import Service
from redrived.store import nodes
from redrived.store.store import Store


class Engine:
    """Every part of the engine, wired; `services` is the order in which they start.

    The dispatcher comes after all others, and after what can still fail in the daemon's start.
    """

    def __init__(
        self,
        config: Config,
        store: Store,
        clock: Clock,
        timers: Timers,
        *,
        node: str,
        epoch: str,
        state_dir: Path,
        runtime_dir: Path,
        drain: Callable[[], None],
        cgroups: Cgroups | None = None,
    ) -> None:
        self.store = store
        self.clock = clock
        self.timers = timers
        self.node = node
        self.epoch = epoch  # new with every start: what was told before is void
        self.started_at = clock.monotonic()
        # Why clients do not get here, if so; the bridge knows, once there is one.
        self.unreachable: Callable[[], str | None] = lambda: None
        self._drain = drain
        self.state_dir = state_dir
        self.definitions = Definitions(config)
        self.attempts = Attempts()
        self.pace = Pace()
        self.pauses = Pauses(store)
        self.trees = Trees(owner_of(store.id, node, state_dir), cgroups=cgroups)
        self.outputs = Outputs(state_dir)
        self.breakers = Breakers(store, self.definitions, timers, clock)
        self.settler = Settler(store, self.definitions, self.breakers, clock)
        self.signs = Signs(store, clock)
        self.ender = Ender(store, clock)
        self.python = PythonRunner(
            store, clock, self.attempts, self.settler, self.signs, self.pace, self.outputs
        )
        self.python.on_begun = self.ender.begun
        self.commands = CommandRunner(
            store,
            Commands(self.trees, self.outputs, runtime_dir),
            clock,
            self.attempts,
            self.settler,
            self.signs,
            self.pace,
        )
        self.commands.on_begun = self.ender.begun
        self.http = HttpRunner(clock, self.attempts, self.settler)
        self.http.on_begun = self.ender.begun
        self.dispatcher = Dispatcher(
            store,
            self.definitions,
            attempts=self.attempts,
            python=self.python,
            commands=self.commands,
            http=self.http,
            settler=self.settler,
            pauses=self.pauses,
            breakers=self.breakers,
            pace=self.pace,
            timers=timers,
        )
        self.promoter = Promoter(store, timers, clock)
        hook_commands = HookCommands(self.trees, runtime_dir / "hooks")
        self.hooks = Hooks(store, self.definitions, clock, hook_commands)
        self.measures = Measures()
        self.settler.when_ended.append(self.measures.ended)
        self.python.when_ran.append(self.measures.ran)
        self.attempts.when_over.append(lambda over: self.measures.over(over, clock.monotonic()))
        store.landed.append(self.measures.landed)
        self.leftovers = Leftovers(store, self.attempts, clock, self.outputs.folder, node)
        self.rescuer = Rescuer(
            store, self.settler, self.leftovers, self.trees, self.outputs, timers, node
        )
        self.disk = Disk(store, timers, state_dir, self.outputs)
        self.leadership = Leadership(store, timers, clock)
        self.pruner = Pruner(
            store,
            timers,
            clock,
            self.outputs,
            keep=lambda: self.definitions.config.store.keep,
            is_leader=lambda: self.leadership.is_held,
        )
        self.gates = Gates(store, timers, clock)
        self.outbox = Outbox(store, lambda: self.definitions)
        self.peers = Peers(self)
        self.redrives = Redrives(
            store, self.definitions, timers, is_leader=lambda: self.leadership.is_held
        )
        self.reloader = Reloader(self)
        self.pipelines = Pipelines(self)
        self.order = Order(store)
        self.timetable = Timetable(self, timers, is_leader=lambda: self.leadership.is_held)
        watch = Watch(self.attempts, self.ender, self.outputs, clock)
        watch.when_passed.append(self.python.passed)
        self.services: list[Service] = [
            self.leadership,
            self.hooks,
            self.pipelines,
            self.order,
            self.rescuer,
            Orphans(self.trees, timers),
            self.breakers,
            Pools(self),
            self.promoter,
            watch,
            Unkillable(self.attempts, self.ender, timers, clock),
            self.gates,
            self.outbox,
            self.timetable,
            self.redrives,
            self.pruner,
            self.disk,
            self.peers,
        ]

    @property
    def state(self) -> str:
        if self.store.writer.trouble is not None:
            return "waiting for the store"
        return "running" if self.dispatcher.is_open else "draining"

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs, and no worker holds anything."""
        dispatcher = self.dispatcher
        return self.commands.is_idle and not dispatcher.is_leasing and not dispatcher.busy()

    @property
    def under_way(self) -> list[Attempt]:
        """The attempts that this daemon has begun; what an earlier one has left is not its work."""
        return [attempt for attempt in self.attempts if attempt not in self.leftovers]

    def end(self, job: int, lease: int, why: Ending, by: str) -> None:
        """End an attempt, should this node run it; another one sees the wish in the row."""
        attempt = self.attempts.get(job, lease)
        if attempt is not None:
            self.ender.end(attempt, why, by)
        else:  # in hand, not begun: it comes back, or begins all the same
            self.ender.wish(job, lease, why, by)
            self.dispatcher.take_back()

    def drain(self, *, stop: bool) -> None:
        """Start nothing more; and go once everything has ended, if asked to."""
        self.dispatcher.close()
        if stop:
            self._drain()

    async def nodes(self) -> list[NodeRow]:
        return await self.store.read(nodes.rows)

    def make_pools(self) -> None:
        """A pool for every interpreter that a task uses."""
        config = self.definitions.config
        used = {task.pool for task in self.definitions.tasks.values() if task.pool is not None}
        for name in used - self.python.pools.keys():
            self.python.pools[name] = Pool(
                name,
                config.pools.get(name, PoolSettings()),
                folder=config.folder,
                outputs=str(self.state_dir / "outputs"),
                trees=self.trees,
                listener=self.python,
            )

    def use(self, config: Config) -> None:
        """Go on with another config; what runs ends under the one it began with."""
        self.define(Definitions(config, self.pipelines.versions))
        known = set(self.python.pools)
        for name in known & config.pools.keys():
            self.python.pools[name].use(config.pools[name])
        self.make_pools()
        self.python.define(self.definitions)
        for name in self.python.pools.keys() - known:
            self.python.pools[name].start()
        self.timetable.use(config)

    def define(self, definitions: Definitions) -> None:
        """Let every part ask these definitions from now on."""
        self.definitions = definitions
        self.breakers.use(definitions)
        self.settler.definitions = definitions
        self.dispatcher.use(definitions)
        self.order.use(definitions.queues)
        self.redrives.definitions = definitions
        self.hooks.use(definitions)


class Pools:
    """The pools as one service."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def start(self) -> None:
        await self._engine.pauses.read()
        self._engine.make_pools()
        self._engine.python.define(self._engine.definitions)
        for pool in self._engine.python.pools.values():
            pool.start()

    async def stop(self) -> None:
        for pool in self._engine.python.pools.values():
            await pool.stop(grace=0)
