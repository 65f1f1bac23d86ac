"""Commands: rendered, started, watched through their files and sockets, settled."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from redrive.clock import Clock
from redrive.errors import RedriveError
from redrive.templates import render
from redrived.engine.attempt import Attempt, Attempts
from redrived.engine.definitions import TaskDefinition
from redrived.engine.job_facts import facts_of
from redrived.engine.settler import Settler
from redrived.processes.command import Command, CommandRun, Exit
from redrived.processes.commands import Commands
from redrived.processes.notify_socket import Notice
from redrived.processes.spawn import NoRoom
from redrived.store.picking import InHand
from redrived.store.unit import to_json


class CommandRunner:
    """Used by the main loop only."""

    def __init__(
        self, commands: Commands, clock: Clock, attempts: Attempts, settler: Settler
    ) -> None:
        self._commands = commands
        self._clock = clock
        self._attempts = attempts
        self._settler = settler

    def start(self, job: InHand, definition: TaskDefinition, at: int) -> None:
        """Start a leased job; whatever comes of it is settled."""
        try:
            command = _command(job, definition)
        except RedriveError as error:
            self._settler.unfit(job, definition, str(error))
            return
        executor = CommandExecutor()
        attempt = Attempt(job, definition, executor, at, self._clock.monotonic())
        listens = definition.heartbeat_source == "notify"
        try:
            run = self._commands.start(
                command, (lambda notice: self._heard(attempt, notice)) if listens else None
            )
        except NoRoom as error:
            self._settler.no_room(job, definition, str(error))
            return
        if isinstance(run, Exit):
            self._settler.exited(attempt, run)
            return
        executor.run = run
        self._attempts.add(attempt)
        run.exited.add_done_callback(lambda done: self._exited(attempt, done.result()))

    def _exited(self, attempt: Attempt, exited: Exit) -> None:
        self._attempts.pop(attempt.job.id, attempt.job.lease)
        self._settler.exited(attempt, exited)

    def _heard(self, attempt: Attempt, notice: Notice) -> None:
        progress = None
        if notice.progress is not None or notice.status is not None:
            made = notice.progress
            text = notice.status or (made.text if made else None)
            progress = to_json(
                {"done": made and made.done, "total": made and made.total, "text": text}
            )
        metrics = to_json(notice.metrics) if notice.metrics else None
        self._settler.beat(attempt, self._clock.now(), progress, metrics)


class CommandExecutor:
    """A command's processes, and how they are ended and looked at."""

    def __init__(self) -> None:
        self.run: CommandRun | None = None
        self._ending: set[asyncio.Task[object]] = set()

    def pids(self) -> list[int]:
        return [self.run.tree.pid] if self.run is not None else []

    def end(self, attempt: Attempt, grace: float) -> None:
        if self.run is not None:
            task: asyncio.Task[object] = asyncio.create_task(self.run.end(grace))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    def live_output(self, attempt: Attempt) -> str | None:
        return None

    def sample(self) -> int:
        return self.run.sample() if self.run is not None else 0


def _command(job: InHand, definition: TaskDefinition) -> Command:
    task = definition.task
    facts = facts_of(job)
    line: list[str] | str
    if isinstance(task.command, list):
        line = [_text(render(word, facts)) for word in task.command]
    else:
        line = task.command or ""
    args: dict[str, Any] = facts["args"]
    return Command(
        job=job.id,
        lease=job.lease,
        execution=job.execution,
        attempt=job.attempt,
        line=line,
        cwd=definition.cwd,
        run=facts["run"],
        env=task.env,
        args=args,
        limits=task.limits,
    )


def _text(value: Any) -> str:
    """A word of a command line: text as it is, everything else as JSON writes it."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
