"""Going on with another config: all of it, or nothing.

The file is read and checked whole first; what cannot change while the daemon runs refuses
the reload and is named. One reload at a time: the next waits and sees what the last one left.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from redrive.config import Config, ConfigRejected, Plan, changes, load
from redrive.errors import ConfigProblem, RedriveError, TryLater
from redrive.protocol.commands import ReloadReply
from redrived import descriptors, logs
from redrived.store import tallies
from redrived.store.database import Trouble
from redrived.store.say import Said, say
from redrived.store.tallies import Counts

if TYPE_CHECKING:
    from redrived.engine.engine import Engine

MOST_PROBLEMS = 20  # told in an event; the answer names them all

log = logging.getLogger(__name__)


class Reloader:
    """Used by the main loop only."""

    def __init__(self, engine: Engine) -> None:
        self.when_begun: list[Callable[[], None]] = []
        self.when_over: list[Callable[[str], None]] = []
        self.rejected = ""  # the last config, and why; nothing once the file is right again
        self._engine = engine
        self._turn = asyncio.Lock()

    async def reload(self, *, dry_run: bool, by: str) -> ReloadReply:
        """What the file would change; unless it is a rehearsal, that is changed."""
        async with self._turn:
            if dry_run:
                return await self._rehearse()
            for call in self.when_begun:
                call()
            word = "the reload failed"
            try:
                reply = await self._reload(by)
                self.rejected = ""
                word = "config reloaded" if reply.changed else "the config has not changed"
                log.info("%s (by %s)", word, by)
                return reply
            except RedriveError as problem:
                word = f"config rejected: {problem.message.splitlines()[0]}"
                self.rejected = word
                log.error("config rejected (by %s), the old one stays:\n%s", by, problem)
                raise
            finally:
                for tell in self.when_over:
                    tell(word)

    async def _rehearse(self) -> ReloadReply:
        new, plan = await self._read()
        return _reply(plan, [*_restarts(plan), *await self._notes(new, plan)])

    async def _reload(self, by: str) -> ReloadReply:
        engine = self._engine
        try:
            new, plan = await self._read()
            if plan.needs_restart:
                raise ConfigProblem(
                    f"{', '.join(plan.needs_restart)} cannot change while the daemon runs",
                    hint="nothing was changed; restart the daemon, or put the old value back",
                )
        except ConfigProblem as problem:
            await self._tell_rejected(by, problem)
            raise
        notes = await self._notes(new, plan)
        if plan:
            await self._put_in_force(new, plan)
            # Told last, as whoever hears of it may count on it, and by now it has to be told.
            await engine.store.submit(say, _told(by, plan, notes), must_land=True)
            await engine.order.run_once()
        return _reply(plan, notes)

    async def _put_in_force(self, new: Config, plan: Plan) -> None:
        """What the store is to keep comes first: where it does not, nothing has changed."""
        engine = self._engine
        trouble = engine.store.writer.trouble
        if trouble is Trouble.FULL or trouble is Trouble.READ_ONLY:
            # Where the catalog stays as it is, its commit would not notice.
            raise TryLater(
                f"the store cannot take this now ({engine.store.database.in_words(trouble)})",
                hint="nothing was changed; `redrive doctor` says more",
            )
        descriptors.provide(new.daemon.concurrency)
        await engine.pipelines.register(new)
        engine.use(new)
        if any(key.startswith("daemon.log_") for key in _keys(plan)):
            logs.set_up(new.daemon.log_level, new.daemon.log_format)

    async def _tell_rejected(self, by: str, problem: ConfigProblem) -> None:
        told = Said("config_rejected", {"by": by, "problems": _problems(problem)})
        try:
            await self._engine.store.submit(say, told)
        except RedriveError as trouble:  # what is wrong with the config matters more
            log.warning("the event could not be stored: %s", trouble)

    async def _read(self) -> tuple[Config, Plan]:
        old = self._engine.definitions.config
        if old.path is None:
            raise ConfigProblem(
                "the daemon was started without a config file", hint="restart it with `--config`"
            )
        loaded = await asyncio.to_thread(load, old.path, look_around=True)
        if loaded.problems:
            raise ConfigRejected([*loaded.problems])
        return loaded.config, changes(old, loaded.config)

    async def _notes(self, new: Config, plan: Plan) -> list[str]:
        counts = await self._engine.store.read(tallies.read)
        return [
            *_left_waiting(plan, counts),
            *_left_running(plan, self._engine),
            *self._engine.pipelines.missing(new),
        ]


def _keys(plan: Plan) -> tuple[str, ...]:
    return (*plan.added, *plan.changed, *plan.removed)


def _reply(plan: Plan, notes: list[str]) -> ReloadReply:
    return ReloadReply(
        changed=bool(plan),
        added=list(plan.added),
        altered=list(plan.changed),
        removed=list(plan.removed),
        needs_restart=list(plan.needs_restart),
        notes=notes,
    )


def _told(by: str, plan: Plan, notes: list[str]) -> Said:
    keys = {"added": plan.added, "changed": plan.changed, "removed": plan.removed}
    return Said("config_reloaded", {"by": by, **keys, "notes": notes})


def _problems(problem: ConfigProblem) -> list[str]:
    if isinstance(problem, ConfigRejected):
        return [str(each) for each in problem.problems[:MOST_PROBLEMS]]
    return [problem.message]


def _restarts(plan: Plan) -> Iterator[str]:
    if plan.needs_restart:
        yield f"{', '.join(plan.needs_restart)}: only a restart changes this; a reload is refused"


def _left_waiting(plan: Plan, counts: Counts) -> Iterator[str]:
    for task in plan.removed_tasks:
        states = [tasks.get(task, {}) for tasks in counts.values()]
        n = sum(each.get("queued", 0) + each.get("retry", 0) for each in states)
        if n:
            go = "1 job of it goes" if n == 1 else f"{n} jobs of it go"
            yield f"task {task} is gone: {go} on waiting until it is back"


def _left_running(plan: Plan, engine: Engine) -> Iterator[str]:
    changed = {key.split(".")[1] for key in (*plan.added, *plan.changed) if _is_task(key)}
    running = {attempt.job.task for attempt in engine.attempts}
    for task in sorted(running & (changed | set(plan.removed_tasks))):
        yield f"task {task} runs: those attempts end as they began"


def _is_task(key: str) -> bool:
    return key.startswith("tasks.")
