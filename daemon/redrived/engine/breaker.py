"""Breakers: while a dependency is down, its jobs wait instead of burning their attempts.

Closed, every end of an attempt is counted over a window; when the share of transient failures
passes the limit, the task's jobs stop being leased. From then on one probe at a time is let
through; the first that does not fail transiently closes it.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from redrive.clock import SECOND, Clock
from redrive.config.sections import Breaker as Settings
from redrived.engine.definitions import Definitions
from redrived.engine.timers import Timers
from redrived.engine.window import Window
from redrived.store import breakers
from redrived.store.breakers import Breaker
from redrived.store.store import Store


class Breakers:
    """Used by the main loop only; a change is in the store before it counts here."""

    def __init__(
        self, store: Store, definitions: Definitions, timers: Timers, clock: Clock
    ) -> None:
        self._definitions = definitions
        self._store = store
        self._timers = timers
        self._clock = clock
        self._windows: dict[str, Window] = {}  # of closed ones
        self._open: dict[str, Breaker] = {}
        self._changes = self._landed = 0

    async def start(self) -> None:
        await self.read()
        self.use(self._definitions)

    def use(self, definitions: Definitions) -> None:
        """Go on by these settings: what has none is closed, what waits for too long waits anew."""
        self._definitions = definitions
        for breaker in self.all():
            settings = self._settings(breaker.task)
            if settings is None:
                self._change(replace(breaker, state="closed", why="its task has no breaker"))
            elif breaker.state == "open" and breaker.probe_at > self._next_probe(settings):
                self._wait(breaker, settings)

    async def read(self) -> None:
        """Take over what other nodes have made of them, unless changes of ours are under way."""
        changes = self._changes
        found = {breaker.task: breaker for breaker in await self._store.read(breakers.read)}
        if not changes == self._changes == self._landed:
            return
        known, self._open = self._open, found
        for task, breaker in found.items():
            if breaker != known.get(task) and breaker.state == "open":
                self._probe_later(breaker)
        for task in known.keys() - found.keys():
            self._windows.pop(task, None)

    async def stop(self) -> None:
        """Nothing runs here by itself."""

    def is_open(self, task: str) -> bool:
        return task in self._open

    def is_probing(self, task: str) -> bool:
        breaker = self._open.get(task)
        return breaker is not None and breaker.state == "probing"

    def get(self, task: str) -> Breaker | None:
        return self._open.get(task)

    def all(self) -> list[Breaker]:
        return list(self._open.values())

    def note(self, task: str, *, failed_transiently: bool, n: int = 1) -> None:
        """Attempts of the task have ended."""
        settings = self._settings(task)
        if settings is None:
            return
        breaker = self._open.get(task)
        if breaker is None:
            self._count(task, settings, failed_transiently, n)
        elif not failed_transiently:
            self._windows.pop(task, None)
            self._change(replace(breaker, state="closed", why="a probe did not fail"))
            if n > 1:
                self._count(task, settings, failed_transiently, n - 1)
        elif breaker.state == "probing":
            self._wait(breaker, settings)

    def _settings(self, task: str) -> Settings | None:
        definition = self._definitions.tasks.get(task)
        return definition.task.breaker if definition else None

    def _count(self, task: str, settings: Settings, failed: bool, n: int) -> None:
        window = self._windows.get(task)
        if window is None or window.seconds != settings.window:
            window = self._windows[task] = Window(settings.window)
        window.note(self._clock.monotonic(), failed=failed, n=n)
        failures, ends = window.failures, window.ends
        if ends < settings.at_least or failures / ends < settings.share:
            return
        at = self._clock.now()
        why = f"{failures} of {ends} attempts failed transiently in {settings.window:g} s"
        opened = Breaker(task=task, state="open", opened_at=at, probe_at=at, why=why)
        self._wait(opened, settings)

    def _wait(self, breaker: Breaker, settings: Settings) -> None:
        waiting = replace(breaker, state="open", probe_at=self._next_probe(settings))
        self._change(waiting)
        self._probe_later(waiting)

    def _next_probe(self, settings: Settings) -> int:
        return self._clock.now() + round(settings.probe_every * SECOND)

    def _probe_later(self, breaker: Breaker) -> None:
        self._timers.at(f"probe {breaker.task}", breaker.probe_at, self._probe(breaker.task))

    def _probe(self, task: str) -> Callable[[], None]:
        def probe() -> None:
            breaker = self._open.get(task)
            if breaker is not None:
                self._change(replace(breaker, state="probing"))

        return probe

    def _change(self, breaker: Breaker) -> None:
        if breaker.state == "closed":
            self._open.pop(breaker.task, None)
        else:
            self._open[breaker.task] = breaker
        self._changes += 1
        writing = self._store.submit(breakers.write, breaker, must_land=True)
        writing.add_done_callback(self._note_landed)

    def _note_landed(self, _: object) -> None:
        self._landed += 1
