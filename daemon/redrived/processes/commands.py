"""Starting commands: everything one needs is made ready, and cleared away when it has ended.

A command that cannot be run is an attempt that failed, with the exit code a shell would
give; only a daemon that has no room for it at all raises, and tries again later.
"""

from __future__ import annotations

import errno
import logging
import os
import shutil
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import msgspec

from redrived import descriptors
from redrived.processes.cgroup import Cgroup
from redrived.processes.command import Command, CommandRun, Exit
from redrived.processes.environment import arguments, check_words, inherited
from redrived.processes.exits import Exits
from redrived.processes.notify_socket import Notice, NotifySocket
from redrived.processes.output import Output, Outputs
from redrived.processes.spawn import (
    CannotRun,
    check_found,
    handle_of,
    limited,
    no_room,
    spawn,
    unprepared,
)
from redrived.processes.tree import OWNER, Trees

log = logging.getLogger(__name__)


class Commands:
    """Starts commands."""

    def __init__(self, trees: Trees, outputs: Outputs, runtime_dir: Path) -> None:
        self._trees = trees
        self._outputs = outputs
        self._exits = Exits(self._exited)
        self._base = inherited()
        # Argument files and notify sockets; what is there was an earlier daemon's.
        self._folder = runtime_dir / "attempts"
        shutil.rmtree(self._folder, ignore_errors=True)
        self._make_folder()

    def start(
        self,
        command: Command,
        on_exit: Callable[[Exit], None],
        on_gone: Callable[[], None] | None = None,
        on_notice: Callable[[Notice], None] | None = None,
    ) -> CommandRun | Exit:
        """A run, whose end is told; or its end at once, when there is nothing to run.

        Raises `NoRoom` to try it or others again later, `Unprepared` to try just this one
        again, and `UnfitArguments` when that is of no use.
        """
        if descriptors.are_scarce():
            raise no_room(OSError(errno.EMFILE, os.strerror(errno.EMFILE)))
        with ExitStack() as cleanup:
            try:
                output = self._outputs.open(command.job, command.execution)
                cleanup.callback(self._outputs.finish, output, command.limits.output)
                env = self._environment(command, on_notice, cleanup)
            except OSError as error:
                raise unprepared(error) from error
            cgroup = self._cgroup(command, cleanup) if self._trees.has_cgroups else None
            try:
                pid = self._spawn(command, env, output, cgroup)
            except CannotRun as error:
                with suppress(OSError):  # a full disk costs the output, never the attempt
                    os.write(output.err, f"{error}\n".encode())
                return Exit(code=error.code, stderr_tail=str(error))
            pidfd = handle_of(pid)
            tree = self._trees.hold(pid, command.mark, cgroup, output.ids)
            kept = cleanup.pop_all()
            run = CommandRun(command, output, self._trees, tree, kept, on_exit, on_gone)
            try:
                self._exits.watch(pidfd, run)
            except OSError as error:  # no memory, or no more watches for this user
                with kept:
                    self._trees.abandon(tree, pidfd)
                raise no_room(error) from error
            return run

    def _make_folder(self) -> None:
        """Before each use, too: what cleans a machine's temporary files may take it away."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _exited(self, runs: list[CommandRun]) -> None:
        statuses = [os.waitpid(run.tree.pid, 0)[1] for run in runs]
        left = self._trees.release_all([run.tree for run in runs])
        for run, status, others_are_left in zip(runs, statuses, left, strict=True):
            try:
                run.leader_exited(status, others_are_left)
            except Exception:  # the others' ends are to be told all the same
                log.exception("the end of %s went wrong", run.command.name)

    def _cgroup(self, command: Command, cleanup: ExitStack) -> Cgroup | None:
        """Made before the program: what that forks first is in it, too."""
        cgroup = self._trees.cgroup(command.name)
        if cgroup:
            cleanup.callback(cgroup.remove)
        return cgroup

    def _spawn(
        self, command: Command, env: dict[str, str], output: Output, cgroup: Cgroup | None
    ) -> int:
        line = command.line
        argv = ["/bin/sh", "-c", line] if isinstance(line, str) else line
        behind = limited(argv, command.limits, cgroup.door if cgroup else None)
        if behind is not argv:
            check_found(argv[0], cwd=command.cwd, env=env)
        try:
            return spawn(behind, cwd=command.cwd, env=env, output=output.paths)
        except CannotRun:
            if not self._outputs.mend(output):
                raise
            return spawn(behind, cwd=command.cwd, env=env, output=output.paths)

    def _environment(
        self,
        command: Command,
        on_notice: Callable[[Notice], None] | None,
        cleanup: ExitStack,
    ) -> dict[str, str]:
        env = {
            **self._base,
            **command.env,
            "REDRIVE_JOB": str(command.job),
            "REDRIVE_ATTEMPT_NUMBER": str(command.attempt),
            "REDRIVE_ATTEMPT": command.name,
            OWNER: self._trees.owner,
        }
        if command.run:
            env["REDRIVE_RUN"] = command.run
        if isinstance(command.line, str):
            self._make_folder()
            path = self._folder / f"{command.name}.json"
            env |= arguments(command.args) | {"REDRIVE_ARGS": str(path)}
            cleanup.callback(path.unlink, missing_ok=True)
            path.write_bytes(msgspec.json.encode(command.args))
        else:
            check_words(command.line)
        if on_notice is not None:
            self._make_folder()
            heard = NotifySocket(str(self._folder / f"{command.name}.notify"), on_notice)
            cleanup.callback(heard.close)
            env["NOTIFY_SOCKET"] = heard.path
        return env
