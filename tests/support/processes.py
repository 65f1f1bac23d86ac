"""Real processes for tests: what runs commands, and ways to look for who is still there."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from redrived.processes import proc
from redrived.processes.command import Command, CommandRun, Exit
from redrived.processes.commands import Commands
from redrived.processes.notify_socket import Notice
from redrived.processes.output import Outputs
from redrived.processes.parent import become_parent
from redrived.processes.tree import Trees

PATIENCE = 20.0  # seconds until a test gives up on a fact


class Workshop:
    """Everything a daemon needs to run commands, in a folder of its own."""

    def __init__(self, folder: Path, owner: str = "", patience: float = 5.0) -> None:
        become_parent()
        self.folder = folder
        self.owner = owner or f"test-{uuid4()}"
        self.trees = Trees(self.owner, patience)
        self.outputs = Outputs(folder / "state")
        self.commands = Commands(self.trees, self.outputs, folder / "run")
        self._jobs = 0
        self._ends: dict[CommandRun, asyncio.Future[Exit]] = {}

    def start(
        self,
        line: list[str] | str,
        on_notice: Callable[[Notice], None] | None = None,
        **options: object,
    ) -> CommandRun | Exit:
        self._jobs += 1
        fixed = {"job": self._jobs, "lease": self._jobs, "execution": 1, "attempt": 1, "line": line}
        command = Command(**{"cwd": str(self.folder), **fixed, **options})  # type: ignore[arg-type]
        end: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()
        run = self.commands.start(command, end.set_result, on_notice=on_notice)
        if isinstance(run, CommandRun):
            self._ends[run] = end
        return run

    def running(self, line: list[str] | str, **options: object) -> CommandRun:
        run = self.start(line, **options)  # type: ignore[arg-type]
        assert isinstance(run, CommandRun), run
        return run

    def end_of(self, run: CommandRun) -> asyncio.Future[Exit]:
        return self._ends[run]

    async def exit_of(self, line: list[str] | str, **options: object) -> Exit:
        run = self.start(line, **options)  # type: ignore[arg-type]
        if isinstance(run, Exit):
            return run
        async with asyncio.timeout(PATIENCE):
            return await self.end_of(run)

    def printed(self, run: CommandRun) -> str:
        page = self.outputs.read(run.command.job, run.command.execution)
        return b"".join(chunk.data for chunk in page.chunks).decode()

    async def close(self) -> None:
        """Nothing outlives a test."""
        for pid in everybody_with(f"REDRIVE_STORE={self.owner}"):
            os.kill(pid, 9)
        while everybody_with(f"REDRIVE_STORE={self.owner}"):
            self.trees.sweep()
            await asyncio.sleep(0.01)


def everybody_with(entry: str) -> list[int]:
    """The living that have it in their environment."""
    return [
        pid
        for pid, facts in proc.everybody().items()
        if not facts.is_dead and entry.encode() in proc.environment(pid)
    ]


def is_alive(pid: int) -> bool:
    facts = proc.stat(pid)
    return facts is not None and not facts.is_dead


async def eventually(fact: Callable[[], object]) -> None:
    """For what another process does in its own time, and nobody announces."""
    async with asyncio.timeout(PATIENCE):
        while not fact():
            await asyncio.sleep(0.005)
