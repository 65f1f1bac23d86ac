"""[[hooks]]: something happened, and somebody outside wants to know.

A hook is told at most once per error group in `every`; what it missed meanwhile is counted.
Whatever a hook does, it harms nothing: few run at once, each for a limited time, and one that
fails is an event of its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from redrive.clock import SECOND, Clock
from redrive.config.sections import Config, Hook, HttpCall
from redrive.errors import RedriveError
from redrive.models import Event, plain
from redrive.pipelines.states import RunState
from redrived.engine.definitions import Definitions
from redrived.engine.rendered import rendered_call
from redrived.processes.hook_command import HookCommands
from redrived.processes.http_answer import Failed
from redrived.processes.http_call import call
from redrived.store import jobs
from redrived.store.events import announced
from redrived.store.say import Said, say
from redrived.store.store import Store
from redrived.store.unit import Landed

AT_ONCE = 4
LAST_WORDS = 5.0  # seconds for what was begun when the daemon stops
MOST_WAITING = 100  # beyond them, what happens is only counted

_WORDS = {"dead": "step_retry_exhausted", "stalled": "action_stalled"}
_SUBJECTS = ("task", "queue", "schedule", "node", "name", "path")

Key = tuple[int, str, str]  # the hook's place, what it is told of, the error group or subject

log = logging.getLogger(__name__)


class Occasion(Struct, frozen=True, kw_only=True):
    """A hook is to be told of something."""

    hook: Hook
    on: str
    event: Event
    missed: int  # of the same kind, since it was last told


class Hooks:
    """Used by the main loop only."""

    def __init__(
        self, store: Store, definitions: Definitions, clock: Clock, commands: HookCommands
    ) -> None:
        self._store = store
        self._clock = clock
        self._commands = commands
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._under_way: set[asyncio.Task[None]] = set()
        self._definitions = definitions
        self._begin_anew()

    def use(self, definitions: Definitions) -> None:
        before, self._definitions = self._config.hooks, definitions
        if self._config.hooks != before:
            self._begin_anew()

    @property
    def _config(self) -> Config:
        return self._definitions.config

    def _begin_anew(self) -> None:
        self._told: dict[Key, float] = {}
        self._missed: Counter[Key] = Counter()
        # By type of event: which hooks ask for it, and by which word.
        self._asked: dict[str, list[tuple[int, str]]] = {}
        for place, hook in enumerate(self._config.hooks):
            for word in hook.on:
                kind = "step_retry_exhausted" if word == "poison" else _WORDS.get(word, word)
                self._asked.setdefault(kind, []).append((place, word))

    async def start(self) -> None:
        self._store.landed.append(self._look)

    async def stop(self) -> None:
        self._store.landed.remove(self._look)
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=LAST_WORDS)
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    def _look(self, landed: Landed) -> None:
        if self._asked and any(event[1] in self._asked for event in landed.events):
            for occasion in self.occasions(announced(landed)):
                self._begin(occasion)

    def occasions(self, events: Iterable[Event]) -> Iterator[Occasion]:
        """Whom to tell of what, now."""
        now = self._clock.monotonic()
        groups: dict[int, str] = {}  # what each job failed with, told just before its end
        for event in events:
            if event.type == "action_error" and event.job is not None:
                groups[event.job] = event.data["error"]["fingerprint"]
            for place, word in self._asked.get(event.type, ()):
                if not _is_meant(word, event):
                    continue
                hook = self._config.hooks[place]
                key = (place, word, _group(event, groups))
                if now - self._told.get(key, float("-inf")) < hook.every:
                    self._missed[key] += 1
                    continue
                self._note(key, now)
                missed = self._missed.pop(key, 0)
                yield Occasion(hook=hook, on=word, event=event, missed=missed)

    def _note(self, key: Key, now: float) -> None:
        self._told[key] = now
        if len(self._told) > 10_000:  # of as many groups; those that may be told again go
            hooks = self._config.hooks
            self._told = {k: at for k, at in self._told.items() if now - at < hooks[k[0]].every}
            self._missed = Counter({k: n for k, n in self._missed.items() if k in self._told})

    def _begin(self, occasion: Occasion) -> None:
        if len(self._under_way) >= MOST_WAITING:
            log.warning("too many hooks wait; nobody was told of %s", occasion.event.type)
            return
        task = asyncio.create_task(self.tell(occasion), name=f"hook {occasion.on}")
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def tell(self, occasion: Occasion) -> None:
        """Run a hook, and note when it fails."""
        async with self._turns:
            try:
                problem = await self._run(occasion.hook, await self._facts(occasion))
            except Exception as error:  # a hook harms nothing, whatever it is
                log.debug("a hook failed", exc_info=True)
                problem = f"{type(error).__name__}: {error}"
        if problem is not None and occasion.event.type != "hook_failed":
            await self._complain(occasion, problem)

    async def _run(self, hook: Hook, facts: dict[str, Any]) -> str | None:
        if hook.command is not None:
            return await self._commands.run(
                hook.command,
                cwd=self._config.folder,
                facts=msgspec.json.encode(facts),
                timeout=hook.timeout,
            )
        assert hook.http is not None
        request = _request(hook.http, facts)
        answer = await call(request, deadline=hook.timeout, now=self._clock.now() / SECOND)
        return answer.message if isinstance(answer, Failed) else None

    async def _facts(self, occasion: Occasion) -> dict[str, Any]:
        event = occasion.event
        job = None if event.job is None else await self._store.read(jobs.get, event.job)
        return {
            "on": occasion.on,
            "event": plain(event),
            "job": None if job is None else plain(self._definitions.budgeted(job)),
            "missed": occasion.missed,
            "node": self._store.writer.node,
            "environment": self._config.console.environment,
        }

    async def _complain(self, occasion: Occasion, problem: str) -> None:
        problem = self._config.redact(problem)
        log.warning("the hook on %s failed: %s", occasion.on, problem)
        told = {
            "on": occasion.on,
            "event": occasion.event.seq,
            "what": "command" if occasion.hook.command else "http",
            "problem": problem[:1000],
        }
        try:
            await self._store.submit(say, Said("hook_failed", told))
        except RedriveError as error:
            log.warning("the event could not be stored: %s", error)


def _is_meant(word: str, event: Event) -> bool:
    """A word may ask for less than the type of its event."""
    if word == "poison":
        return event.data.get("reason") == "poison"
    # A run that was cancelled ends with this event, too, and nothing has failed.
    return word != "execution_failed" or event.state != RunState.CANCELLED


def _group(event: Event, groups: dict[int, str]) -> str:
    """What counts as the same thing happening again."""
    if event.job is not None:
        return groups.get(event.job) or str(event.data.get("task", ""))
    return next((str(event.data[name]) for name in _SUBJECTS if name in event.data), "")


def _request(http: HttpCall, facts: dict[str, Any]) -> HttpCall:
    """The call as configured; its body are the facts, unless it has one."""
    request = rendered_call(http, facts)
    has_body = http.json is not None or http.body is not None or http.method in ("GET", "HEAD")
    return request if has_body else replace(request, json=facts)
