"""The tasks of this pool: which function, how often it beats, in which surroundings."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Callable

from .descriptors import out_of_the_way
from .stale import refuse_stale

Handler = Callable[..., Any]


class UnknownTask(LookupError):
    """A reload has given the task to another pool, or to none, since the job was handed over."""


class Task:
    def __init__(
        self,
        home: str,
        python: str,
        beat_every: float,
        env: dict[str, str] | None,
        cwd: str | None,
        limits: dict[str, int] | None,
    ) -> None:
        self.python = python
        self.beat_every = beat_every
        self._env = env or {}
        self._cwd = cwd or home
        self._limits = limits
        # Needs no surroundings of its own.
        self.plain = not env and not limits and os.path.realpath(self._cwd) == home
        self.handler: Handler | None = None  # once a job has needed it

    def load(self) -> Handler:
        """The function; imported at the first job, so a bad module fails jobs, not workers."""
        module, _, path = self.python.partition(":")
        try:
            __import__(module)
        except ImportError as error:  # one module may be new, and what it needs of another stale
            refuse_stale(error.path, error)
            raise
        found: Any = sys.modules[module]
        for name in path.split("."):
            try:
                found = getattr(found, name)
            except AttributeError as error:
                refuse_stale(getattr(sys.modules[module], "__file__", None), error)
                raise
        self.handler = found
        handler: Handler = found
        return handler

    @contextmanager
    def surroundings(self) -> Generator[None, None, None]:
        """What the config gives this task: its folder; and until its end, environment and limits."""
        before = {name: os.environ.get(name) for name in self._env}
        try:
            os.environ.update(self._env)
            os.chdir(self._cwd)
            with self._limited():
                yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value

    def _limited(self) -> AbstractContextManager[None]:
        if not self._limits:
            return nullcontext()
        from .limits import within

        return within(self._limits)


class Tasks:
    def __init__(self) -> None:
        self._home = os.getcwd()
        self._way_home = out_of_the_way(os.open(".", os.O_PATH | os.O_CLOEXEC))
        self._tasks: dict[str, Task] = {}

    def announce(self, tasks: dict[str, list[Any]]) -> None:
        """Heard by the reader, while a job may be in surroundings of its own."""
        self._tasks = {name: Task(self._home, *facts) for name, facts in tasks.items()}

    def go_home(self) -> None:
        """Wherever a job has gone, the next one begins in our folder, even if that was removed."""
        try:
            os.fchdir(self._way_home)
        except OSError:
            pass  # it may not be entered any more: that is the trouble of those who need it

    def named(self, name: str) -> Task:
        try:
            return self._tasks[name]
        except KeyError:
            raise UnknownTask(f"this pool knows no task {name!r}") from None
