"""Running the command of a hook: facts in, a word of complaint out, whatever it does.

The facts are its standard input, and a file for those who would rather read one.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from redrive.config.sections import Limits
from redrive.errors import TryLater
from redrived.processes import proc
from redrived.processes.cgroup import Cgroup
from redrived.processes.environment import inherited
from redrived.processes.exits import Exits
from redrived.processes.marks import command_mark
from redrived.processes.signals import signal_name
from redrived.processes.spawn import CannotRun, handle_of, limited, no_room, spawn
from redrived.processes.tree import OWNER, Tree, Trees

GRACE = 2.0  # seconds after the deadline
_EXCERPT = 500  # bytes of its output that a complaint repeats
_READ_FACTS = 'exec "$@" < "$REDRIVE_FACTS"'


class HookCommands:
    """Used by the main loop only."""

    def __init__(self, trees: Trees, folder: Path) -> None:
        self._trees = trees
        self._folder = folder
        self._exits = Exits(self._exited)
        self._numbers = count(1)

    async def run(
        self, argv: Sequence[str], *, cwd: str, facts: bytes, timeout: float
    ) -> str | None:
        """What went wrong, if anything."""
        number = next(self._numbers)
        facts_file, output = self._folder / f"{number}.json", self._folder / f"{number}.out"
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            facts_file.write_bytes(facts)
            output.touch(mode=0o600)
            code = await self._run(list(argv), cwd, facts_file, output, number, timeout)
            return None if code == 0 else _complaint(code, output)
        except TimeoutError:
            return f"it was still running after {timeout:g} s, and was ended"
        except (CannotRun, TryLater, OSError) as error:
            return str(error)
        finally:
            facts_file.unlink(missing_ok=True)
            output.unlink(missing_ok=True)

    async def _run(
        self, argv: list[str], cwd: str, facts: Path, output: Path, number: int, timeout: float
    ) -> int:
        name = f"hook.{number}"
        cgroup = self._trees.cgroup(name)
        try:
            tree, gone = self._start(argv, cwd, facts, output, name, cgroup)
            try:
                async with asyncio.timeout(timeout):
                    return await asyncio.shield(gone)
            finally:
                await asyncio.shield(self._trees.end(tree, 0 if gone.done() else GRACE))
        finally:
            if cgroup is not None:
                cgroup.remove()

    def _start(
        self,
        argv: list[str],
        cwd: str,
        facts: Path,
        output: Path,
        name: str,
        cgroup: Cgroup | None,
    ) -> tuple[Tree, asyncio.Future[int]]:
        """Its tree, and its exit code to come."""
        env = {
            **inherited(),
            OWNER: self._trees.owner,
            "REDRIVE_ATTEMPT": name,
            "REDRIVE_FACTS": str(facts),
        }
        words = ["/bin/sh", "-c", _READ_FACTS, "hook", *argv]
        behind = limited(words, Limits(), cgroup.door if cgroup else None)
        pid = spawn(behind, cwd=cwd, env=env, output=(str(output), str(output)))
        pidfd = handle_of(pid)
        tree = self._trees.hold(pid, command_mark(name), cgroup, lambda: proc.ids_of(str(output)))
        gone: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        try:
            self._exits.watch(pidfd, (tree, gone))
        except OSError as error:
            self._trees.abandon(tree, pidfd)
            raise no_room(error) from error
        return tree, gone

    def _exited(self, hooks: list[tuple[Tree, asyncio.Future[int]]]) -> None:
        for tree, gone in hooks:
            _, status = os.waitpid(tree.pid, 0)
            self._trees.release(tree)
            gone.set_result(os.waitstatus_to_exitcode(status))


def _complaint(code: int, output: Path) -> str:
    how = f"exit code {code}" if code >= 0 else f"ended by {signal_name(-code)}"
    with output.open("rb") as file:
        file.seek(max(0, output.stat().st_size - _EXCERPT))
        said = file.read().decode(errors="replace").strip()
    return f"{how}: {said}" if said else how
